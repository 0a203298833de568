// Package config has every setting of a node in one typed Config, and where each value comes from.
//
// # Precedence
//
// A flag of the command line (or an option in the program's code) overrides a MOBULA_ environment variable, which
// overrides the YAML file, which overrides the default. The file is that of --config, else of MOBULA_CONFIG, else
// mobula/config.yaml in the user's configuration directory (~/.config), which need not exist. The first place that
// has a setting gives the whole value: lists and maps are not merged.
//
// # Names
//
// A setting has one key, as in the file, and two names that follow from it: "store.size" is
// MOBULA_STORE_SIZE and --store-size. Load refuses every other name in the file and every
// other MOBULA_ variable, and suggests the closest known one; the runtime's own variables are
// in RuntimeEnv.
//
// # Who owns what
//
// A Config is a plain value; there is no global state. Load reads the environment and at most one file, and blocks
// only for that.
//
// # Errors
//
// Load reports all mistakes at once, each an errs.ErrInvalid that names the source, the value and what would be
// valid.
package config
