// Package config is every setting of a node in one typed Config, and where its value
// comes from.
//
// # Precedence
//
// A flag of the command line (or an option in the program's own code) goes before a MOBULA_
// environment variable, that before the YAML file, that before the default. The file is the
// one of --config, else of MOBULA_CONFIG, else mobula/config.yaml in the user's
// configuration directory (~/.config), which need not exist. A setting is taken whole from
// the first place that has it: lists and maps are not merged.
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
// A Config is a plain value. Nothing is kept and nothing is global. Load reads the
// environment and at most one file, and blocks only for that.
//
// # Errors
//
// Load reports every mistake at once, each an errs.ErrInvalid that names the source, the
// value and what would be right.
package config
