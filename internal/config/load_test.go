package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// write makes a configuration file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.String("config", "", "not a setting")
	AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestPrecedence(t *testing.T) {
	yaml := "store:\n  size: 1GiB\n"
	env := []string{"MOBULA_STORE_SIZE=2GiB", "PATH=/bin"}
	flag := []string{"--store-size", "3GiB"}
	for _, c := range []struct {
		name         string
		yaml         string
		env, flag    []string
		option       any
		want         Bytes
		source       string
		sourceIsFile bool
	}{
		{name: "default", want: 0, source: "default"},
		{name: "file", yaml: yaml, want: 1 << 30, sourceIsFile: true},
		{name: "environment", env: env, want: 2 << 30, source: "MOBULA_STORE_SIZE"},
		{name: "flag", flag: flag, want: 3 << 30, source: "--store-size"},
		{name: "option", option: "4GiB", want: 4 << 30, source: "option store.size"},
		{name: "environment over file", yaml: yaml, env: env, want: 2 << 30, source: "MOBULA_STORE_SIZE"},
		{name: "flag over file", yaml: yaml, flag: flag, want: 3 << 30, source: "--store-size"},
		{name: "flag over environment", env: env, flag: flag, want: 3 << 30, source: "--store-size"},
		{name: "flag over all", yaml: yaml, env: env, flag: flag, want: 3 << 30, source: "--store-size"},
		{name: "option over all", yaml: yaml, env: env, flag: flag, option: uint64(4 << 30), want: 4 << 30, source: "option store.size"},
		{name: "an empty variable says nothing", yaml: yaml, env: []string{"MOBULA_STORE_SIZE="}, want: 1 << 30, sourceIsFile: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{Environ: append([]string{}, c.env...), Home: t.TempDir(), Flags: flags(t, c.flag...)}
			if c.yaml != "" {
				in.File = write(t, c.yaml)
			}
			if c.option != nil {
				in.Options = map[string]any{"store.size": c.option}
			}
			got, err := Load(in)
			if err != nil {
				t.Fatal(err)
			}
			if c.sourceIsFile {
				c.source = in.File + ": store.size"
			}
			if got.Store.Size != c.want || got.Source("store.size") != c.source {
				t.Errorf("store.size is %v from %q, want %v from %q", got.Store.Size, got.Source("store.size"), c.want, c.source)
			}
		})
	}
}

func TestWhichFile(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "mobula"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "mobula", "config.yaml"), []byte("name: home\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named, flagged := write(t, "name: named\n"), write(t, "name: flagged\n")
	for _, c := range []struct {
		in   Input
		want string
	}{
		{Input{Home: home, Environ: []string{}}, "home"},
		{Input{Home: home, Environ: []string{"MOBULA_CONFIG=" + named}}, "named"},
		{Input{Home: home, Environ: []string{"MOBULA_CONFIG=" + named}, File: flagged}, "flagged"},
		{Input{Home: t.TempDir(), Environ: []string{}}, ""},
	} {
		got, err := Load(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != c.want {
			t.Errorf("%+v: the name is %q, want %q", c.in, got.Name, c.want)
		}
	}
	for asked, in := range map[string]Input{
		"--config":      {File: "/no/such/file.yaml", Environ: []string{}},
		"MOBULA_CONFIG": {Environ: []string{"MOBULA_CONFIG=/no/such/file.yaml"}},
	} {
		if _, err := Load(in); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), asked) || !strings.Contains(err.Error(), "/no/such/file.yaml") {
			t.Errorf("a file that %s names and does not exist: %v", asked, err)
		}
	}
}

func TestUnknownNamesAreRefusedWithTheClosest(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		env        []string
		options    map[string]any
		want       []string
	}{
		{name: "file", yaml: "store:\n  sise: 1GiB\n", want: []string{`"store.sise"`, "store.size?"}},
		{name: "without its section", yaml: "spill-threshold: 0.5\n", want: []string{`"spill-threshold"`, "store.spill-threshold?"}},
		{name: "dash forgotten", yaml: "store:\n  inlinemax: 1\n", want: []string{"store.inline-max?"}},
		{name: "environment", env: []string{"MOBULA_STORE_SIZ=1GiB"}, want: []string{`"MOBULA_STORE_SIZ"`, "MOBULA_STORE_SIZE?"}},
		{name: "runtime's", env: []string{"MOBULA_ADRESS=x"}, want: []string{"MOBULA_ADDRESS?"}},
		{name: "nothing near", env: []string{"MOBULA_QUUXFROBNICATE=x"}, want: []string{`"MOBULA_QUUXFROBNICATE"`}},
		{name: "option", options: map[string]any{"cpu": 1}, want: []string{"option", "cpus?"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{Environ: append([]string{}, c.env...), Home: t.TempDir(), Options: c.options}
			if c.yaml != "" {
				in.File = write(t, c.yaml)
			}
			_, err := Load(in)
			if !errors.Is(err, errs.ErrInvalid) {
				t.Fatalf("got %v, want ErrInvalid", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %s", err, w)
				}
			}
			if c.name == "nothing near" && strings.Contains(err.Error(), "did you mean") {
				t.Errorf("%q suggests something unlike", err)
			}
		})
	}
}

func TestTheRuntimesOwnVariablesAreKnown(t *testing.T) {
	in := Input{Home: t.TempDir(), Environ: []string{"MOBULA_ADDRESS=/run/x.sock", "MOBULA_BINARY=/usr/bin/mobula", "MOBULA_WORKER_TOKEN=abc", "MOBULA_TEST_CHILD=1"}}
	if _, err := Load(in); err != nil {
		t.Fatal(err)
	}
}

// A node that is alone is of no use without CPUs, so 0 is an error in every source.
func TestNoCPUsAreRefused(t *testing.T) {
	for _, in := range []Input{
		{Environ: []string{"MOBULA_CPUS=0"}}, {Environ: []string{"MOBULA_RESOURCES=cpu=0"}}, {Flags: flags(t, "--cpus", "0")},
		{File: write(t, "cpus: 0\n")}, {Options: map[string]any{"resources": map[string]any{"CPU": 0}}},
	} {
		if _, err := Load(in); err == nil || !strings.Contains(err.Error(), "want more than 0; leave it out for all CPUs of the machine") {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

// A node of a cluster may have no CPUs, as a control-plane server that is to run nobody's code. A process that is given the settings has none either.
func TestANodeOfAClusterMayHaveNoCPUs(t *testing.T) {
	for _, in := range []Input{{Flags: flags(t, "--cpus", "0", "--listen", "10.0.0.1")}, {Environ: []string{"MOBULA_CPUS=0", "MOBULA_JOIN=10.0.0.1"}}} {
		c, err := Load(in)
		if err != nil || c.CPUs != NoCPUs {
			t.Fatalf("%+v: %v, %v", in, c, err)
		}
		for _, v := range c.Describe() {
			if v.Key == "cpus" && v.Value != "0" {
				t.Errorf("it is shown as %q", v.Value)
			}
		}
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	in := Input{
		File:    write(t, "store:\n  size: 12 parsecs\n  bogus: 1\ncpus: -1\nlog: loud\nevents: {ring: 1.5}\n"),
		Environ: []string{"MOBULA_STORE_SPILL_THRESHOLD=1.5", "MOBULA_CLOSE_TIMEOUT=5", "MOBULA_NOPE=1"},
		Flags:   flags(t, "--metrics-address", "0.0.0.0:9464", "--log-level", "trace", "--resources", "tpu"),
	}
	_, err := Load(in)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		in.File + `: store.size: "12 parsecs": not a size`,
		`there is no setting "store.bogus"`,
		`cpus: "-1": want more than 0`,
		"log is a section, not a setting; it has file, files, format, level, size",
		`events.ring: "1.5": want a whole number`,
		`MOBULA_STORE_SPILL_THRESHOLD: "1.5": want a fraction above 0`,
		`MOBULA_CLOSE_TIMEOUT: "5": not a duration`,
		`there is no setting "MOBULA_NOPE"`,
		`--metrics-address: "0.0.0.0:9464": only loopback`,
		`--log-level: "trace": want one of debug, info, warn, error`,
		`--resources: "tpu": want name=amount`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not reported in:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 11 {
		t.Errorf("%d mistakes are reported, want 11:\n%v", n, err)
	}
}

func TestEveryKindOfValue(t *testing.T) {
	c, err := Load(Input{Environ: []string{
		"MOBULA_RESOURCES=nvidia.com/gpu=2, tpu=0.5", "MOBULA_WORKERS_PROCESSES=on",
	}, File: write(t, `
name: n1
resources: {lost: 1}
store:
  size: 1073741824
  spill: [/a, "s3://bucket/x"]
  args-fraction: 1
workers.heap: 64MiB
close-timeout: 1m30s
metrics:
  address: localhost:0
log:
`), Flags: flags(t, "--trace-ratio=0", "--events-files=7")})
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "n1" || c.Store.Size != 1<<30 || strings.Join(c.Store.Spill, " ") != "/a s3://bucket/x" || c.Store.ArgsFraction != 1 ||
		c.Workers.Heap != 64<<20 || c.CloseTimeout != 90*time.Second || c.Metrics.Address != "127.0.0.1:0" || c.Trace.Ratio != 0 ||
		c.Events.Files != 7 || !c.Workers.Processes || c.Log.Level != "info" {
		t.Errorf("got %+v", c)
	}
	if len(c.Resources) != 2 || c.Resources["nvidia.com/gpu"] != 2 || c.Resources["tpu"] != 0.5 {
		t.Errorf("resources are %v: the environment's replace the file's", c.Resources)
	}
}

// What Describe shows of a configuration, given again as flags, variables or a file, makes the same one.
func TestDescribeRoundTrips(t *testing.T) {
	first, err := Load(Input{Home: t.TempDir(), Environ: []string{"MOBULA_STORE_SPILL=/a,/b", "MOBULA_RESOURCES=x=1,y=2.5", "MOBULA_METRICS_ADDRESS=[::1]:80"}})
	if err != nil {
		t.Fatal(err)
	}
	var args, env []string
	for _, v := range first.Describe() {
		if v.Value == "" {
			continue
		}
		args = append(args, "--"+v.Flag+"="+v.Value)
		env = append(env, v.Env+"="+v.Value)
	}
	for name, in := range map[string]Input{"flags": {Flags: flags(t, args...), Environ: []string{}, Home: t.TempDir()}, "environment": {Environ: env, Home: t.TempDir()}} {
		again, err := Load(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, v := range again.Describe() {
			if w := first.Describe()[i]; v.Value != w.Value {
				t.Errorf("%s: %s is %q, was %q", name, v.Key, v.Value, w.Value)
			}
		}
	}
}

func TestNamesAreUnambiguous(t *testing.T) {
	env, flag := map[string]string{}, map[string]string{}
	for _, s := range Settings() {
		if o := env[s.Env]; o != "" {
			t.Errorf("%s and %s are both %s", o, s.Key, s.Env)
		}
		if o := flag[s.Flag]; o != "" {
			t.Errorf("%s and %s are both --%s", o, s.Key, s.Flag)
		}
		if isRuntimeEnv(s.Env) {
			t.Errorf("%s is the runtime's own", s.Env)
		}
		if s.Doc == "" || s.Kind == "" || s.Default == "" || !strings.HasSuffix(s.Doc, ".") {
			t.Errorf("%s is not described: %+v", s.Key, s)
		}
		env[s.Env], flag[s.Flag] = s.Key, s.Key
	}
}

func TestBytesRoundTrip(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Uint64Range(0, 1<<50).Draw(t, "n"))
		b = b >> rapid.UintRange(0, 40).Draw(t, "shift") << rapid.UintRange(0, 10).Draw(t, "back")
		got, err := ParseBytes(b.String())
		if err != nil || got != b {
			t.Fatalf("%d prints as %q, which reads as %d (%v)", uint64(b), b, uint64(got), err)
		}
	})
	for _, s := range []string{"", "x", "-1", "1 parsec", "1e3"} {
		if v, err := ParseBytes(s); err == nil {
			t.Errorf("%q reads as %d", s, v)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}} {
		if d := distance(c.a, c.b); d != c.want || distance(c.b, c.a) != d {
			t.Errorf("%q and %q are %d apart, want %d", c.a, c.b, d, c.want)
		}
	}
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte("store: {size: 1GiB}\n"))
	f.Add([]byte("resources: {a.b: 1}\nstore.spill: [a]\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("a: &x [*x]\n"))
	path := filepath.Join(f.TempDir(), "f.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Input{File: path, Environ: []string{}})
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
		if err != nil && !errors.Is(err, errs.ErrInvalid) {
			t.Fatalf("untyped error %v", err)
		}
	})
}

// The control plane is embedded, or at the URLs of NATS servers; passwords are not shown.
func TestWhereTheControlPlaneIs(t *testing.T) {
	for _, c := range []struct {
		said  any
		want  []string
		shown string
		bad   bool
	}{
		{said: nil, shown: "embedded"},
		{said: "Embedded", shown: "embedded"},
		{said: "nats://a:4222", want: []string{"nats://a:4222"}, shown: "nats://a:4222"},
		{said: "nats://a:4222, tls://me:secret@b:4222", want: []string{"nats://a:4222", "tls://me:secret@b:4222"}, shown: "nats://a:4222,tls://me:xxxxx@b:4222"},
		{said: []any{"nats://a", "nats://b"}, want: []string{"nats://a", "nats://b"}, shown: "nats://a,nats://b"},
		{said: "embedded,nats://a:4222", bad: true}, {said: "a:4222", bad: true}, {said: "http://a", bad: true}, {said: "nats://", bad: true}, {said: "http://me:secret@a", bad: true},
	} {
		options := map[string]any{}
		if c.said != nil {
			options["gcs"] = c.said
		}
		got, err := Load(Input{Options: options})
		if (err != nil) != c.bad || c.bad && !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%v: %v", c.said, err)
			continue
		}
		if c.bad {
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: it says %v", c.said, err)
			}
			continue
		}
		if !slices.Equal(got.GCS, c.want) {
			t.Errorf("%v gives %q", c.said, got.GCS)
		}
		for _, v := range got.Describe() {
			if v.Key == "gcs" && v.Value != c.shown {
				t.Errorf("%v is shown as %q", c.said, v.Value)
			}
		}
	}
}
