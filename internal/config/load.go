package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"mobula/internal/errs"
)

// Input is where Load looks. The zero value is the process' environment and the default file.
type Input struct {
	Options map[string]any // by key, of the program's own code; before everything else
	Flags   *pflag.FlagSet // those of AddFlags that were given count; nil: none
	File    string         // of --config; empty: MOBULA_CONFIG, then the user's own
	Environ []string       // nil: os.Environ()
	Home    string         // the user's configuration directory; empty: os.UserConfigDir()
}

const prefix = "MOBULA_"

// said is a value and where it was said.
type said struct {
	value  any
	source string
}

// Load reads the configuration. On an error it reports everything that is wrong.
func Load(in Input) (*Config, error) {
	c := new(Config)
	all := c.settings()
	l := loader{known: make(map[string]*setting, len(all)), merged: koanf.New("."), sources: make(map[string]source), place: 1}
	for i := range all {
		l.known[all[i].Key] = &all[i]
	}
	if in.Environ == nil {
		in.Environ = os.Environ()
	}
	// From the weakest to the strongest: the later one replaces.
	l.file(in)
	l.place++
	l.environ(in)
	l.place++
	l.flags(in.Flags)
	l.place++
	for _, key := range slices.Sorted(maps.Keys(in.Options)) {
		if l.known[key] == nil {
			l.unknown("option", key, l.keys())
			continue
		}
		l.say(key, in.Options[key], "option "+key)
	}
	for _, s := range all {
		if v := l.merged.Get(s.Key); v != nil {
			if err := s.set(v); err != nil {
				l.bad("%s: %v", l.sources[s.Key].name, err)
			}
		}
	}
	c.sources = l.sources
	if c.CPUs == NoCPUs && c.Listen == "" && len(c.Join) == 0 {
		l.bad("%s: \"0\": %v. A node of a cluster may have none: say listen or join, too", c.Source("cpus"), someCPU(0))
	}
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	return c, nil
}

type loader struct {
	known   map[string]*setting
	merged  *koanf.Koanf
	sources map[string]source // by key
	place   int               // that is being read; a later one replaces
	errs    []error
}

func (l *loader) bad(format string, args ...any) {
	l.errs = append(l.errs, errs.New(errs.CodeInvalid, format, args...))
}

func (l *loader) say(key string, v any, name string) {
	if v == nil {
		return // "store:" with nothing after it says nothing
	}
	l.merged.Delete(key) // maps would be merged
	if err := l.merged.Set(key, v); err != nil {
		l.bad("%s: %v", name, err)
		return
	}
	l.sources[key] = source{name, l.place}
}

func (l *loader) keys() []string { return slices.Sorted(maps.Keys(l.known)) }

func (l *loader) unknown(source, name string, known []string) {
	hint := ""
	if c := closest(name, known); c != "" {
		hint = "; did you mean " + c + "?"
	}
	l.bad("%s: there is no setting %q%s", source, name, hint)
}

// file reads the YAML file, if there is one.
func (l *loader) file(in Input) {
	path, asked := in.path()
	if path == "" {
		return
	}
	if _, err := os.Stat(path); err != nil {
		if asked != "" || !errors.Is(err, fs.ErrNotExist) {
			l.bad("configuration file %q%s cannot be read: %v", path, asked, err)
		}
		return
	}
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		l.bad("configuration file %q: %v", path, err)
		return
	}
	l.walk(path, "", k.Raw())
}

// path gives the file's path and who asked for it; the user's own need not exist.
func (in Input) path() (path, asked string) {
	if in.File != "" {
		return in.File, " (of --config)"
	}
	for _, e := range in.Environ {
		if v, ok := strings.CutPrefix(e, "MOBULA_CONFIG="); ok && v != "" {
			return v, " (of MOBULA_CONFIG)"
		}
	}
	home := in.Home
	if home == "" {
		var err error
		if home, err = os.UserConfigDir(); err != nil {
			return "", "" // a process without a home has no file of its own
		}
	}
	return filepath.Join(home, "mobula", "config.yaml"), ""
}

// walk takes the file's keys: nested, or with the dots written out.
func (l *loader) walk(path, at string, m map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		key, v := name, m[name]
		if at != "" {
			key = at + "." + name
		}
		if l.known[key] != nil {
			l.say(key, v, path+": "+key)
			continue
		}
		below := l.below(key)
		sub, isMap := v.(map[string]any)
		switch {
		case len(below) == 0:
			l.unknown(path, key, l.keys())
		case isMap:
			l.walk(path, key, sub)
		case v != nil:
			l.bad("%s: %s is a section, not a setting; it has %s", path, key, strings.Join(below, ", "))
		}
	}
}

// below are the settings of a section.
func (l *loader) below(section string) []string {
	var out []string
	for _, k := range l.keys() {
		if rest, ok := strings.CutPrefix(k, section+"."); ok {
			out = append(out, rest)
		}
	}
	return out
}

func (l *loader) environ(in Input) {
	keyOf := make(map[string]string, len(l.known))
	for key, s := range l.known {
		keyOf[s.Env] = key
	}
	found := make(map[string]said)
	// The provider's nesting is not used: "_" is both the dot and the dash of a key.
	p := env.Provider("", env.Opt{Prefix: prefix, EnvironFunc: func() []string { return in.Environ },
		TransformFunc: func(name, v string) (string, any) {
			if !isRuntimeEnv(name) && v != "" { // an empty variable says nothing
				found[name] = said{v, name}
			}
			return "", nil
		}})
	if _, err := p.Read(); err != nil {
		l.bad("environment: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if key, ok := keyOf[name]; ok {
			l.say(key, found[name].value, name)
			continue
		}
		l.unknown("environment", name, append(slices.Sorted(maps.Keys(keyOf)), RuntimeEnv...))
	}
}

// AddFlags defines a flag for every setting.
func AddFlags(fs *pflag.FlagSet) {
	for _, s := range Settings() {
		if s.Kind == "bool" {
			fs.Bool(s.Flag, false, s.Doc)
			continue
		}
		fs.Var(&flagValue{kind: s.Kind}, s.Flag, s.Doc+" Default: "+s.Default+".")
	}
}

// flagValue is text until Load reads it, so that all mistakes are reported together.
type flagValue struct{ kind, text string }

func (f *flagValue) String() string     { return f.text }
func (f *flagValue) Set(s string) error { f.text = s; return nil }
func (f *flagValue) Type() string       { return f.kind }

func (l *loader) flags(set *pflag.FlagSet) {
	if set == nil {
		return
	}
	keyOf := make(map[string]string, len(l.known))
	for key, s := range l.known {
		keyOf[s.Flag] = key
	}
	k := koanf.New("/") // a delimiter that no key has: keys stay as they are
	err := k.Load(posflag.ProviderWithFlag(set, "/", nil, func(f *pflag.Flag) (string, any) {
		return keyOf[f.Name], f.Value.String() // flags of other kinds have no key and are left out
	}), nil)
	if err != nil {
		l.bad("flags: %v", err)
		return
	}
	for _, key := range k.Keys() {
		l.say(key, k.Get(key), "--"+l.known[key].Flag)
	}
}
