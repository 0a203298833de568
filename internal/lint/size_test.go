package lint

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mobula/internal/testkit"
)

const hello = "./internal/lint/testdata/hello"

// drivers are packages that a program imports for their effect alone.
var drivers = words("objectstore/spill/s3 telemetry/otlp")

// What a hello-world program may be: what it is now, and 3 % for what comes.
const (
	maxHelloBytes   = 48_500_000 // on linux/amd64, with symbols and debug information; it has both ways of an actor's call until the old one goes (decision 0038)
	maxHelloModules = 56         // of others
)

// unlinked are what no program links that has not asked for it. Templates are among them since the linker keeps every exported method
// of every type where one may be called by name.
var unlinked = words(`mobula/objectstore/spill/s3 mobula/telemetry/otlp github.com/aws gocloud.dev google.golang.org/grpc
	go.opentelemetry.io/otel/exporters/otlp go.opentelemetry.io/proto go.opentelemetry.io/contrib github.com/apache/arrow-go github.com/spf13/cobra
	text/template html/template net/rpc testing`)

func TestHelloLinksOnlyWhatItNeeds(t *testing.T) {
	packages(t) // looks at the sources, so that this test runs again when one changes
	all, err := list("-deps", hello)
	if err != nil {
		t.Fatal(err)
	}
	for _, not := range unlinked {
		for _, path := range slices.Sorted(maps.Keys(all)) {
			if in(path, not) {
				t.Errorf("a hello-world program links %s, which %s imports", path, importedBy(all, path))
				break // one of them says enough
			}
		}
	}
	modules := make(map[string]bool)
	for _, p := range all {
		if p.Module != nil && !p.ours() {
			modules[p.Module.Path] = true
		}
	}
	if len(modules) > maxHelloModules {
		t.Errorf("a hello-world program links %d modules of others, at most %d: %v", len(modules), maxHelloModules, slices.Sorted(maps.Keys(modules)))
	}
	if all, err = list("-deps", "./cmd/mobula"); err != nil {
		t.Fatal(err)
	}
	for _, d := range drivers {
		if all[module+"/"+d] == nil {
			t.Errorf("the mobula binary does not link %s", d)
		}
	}
}

// importedBy is one of the packages that import another, of this module if there is one.
func importedBy(all map[string]*pkg, path string) string {
	var by []string
	for _, p := range all {
		if slices.Contains(p.Imports, path) {
			if p.ours() {
				return short(p.ImportPath)
			}
			by = append(by, p.ImportPath)
		}
	}
	return slices.Max(append(by, hello))
}

func TestHelloIsSmallAndRuns(t *testing.T) {
	packages(t)
	exe := filepath.Join(t.TempDir(), "hello")
	build := exec.Command("go", "build", "-trimpath", "-o", exe, hello)
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	is, err := os.Stat(exe)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a hello-world program has %d bytes", is.Size())
	if runtime.GOOS+"/"+runtime.GOARCH == "linux/amd64" && is.Size() > maxHelloBytes {
		t.Errorf("a hello-world program has %d bytes, at most %d: what does it link? go tool nm -size -sort size says what is large", is.Size(), maxHelloBytes)
	}
	for _, c := range []struct{ env, out, says string }{
		{"", "3\n", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9", "3\n", "mobula/telemetry/otlp"},
		{"MOBULA_STORE_SPILL=s3://bucket?region=none", "", "mobula/objectstore/spill/s3"},
	} {
		ctx := testkit.Within(t)
		var out, log strings.Builder
		run := exec.CommandContext(ctx, exe)
		run.Env, run.Stdout, run.Stderr = append(os.Environ(), "MOBULA_STORE_SIZE=64MiB", c.env), &out, &log
		err := run.Run()
		if (err == nil) != (c.out != "") || out.String() != c.out || !strings.Contains(log.String(), c.says) {
			t.Errorf("with %q: %v, %q\n%s", c.env, err, out.String(), log.String())
		}
	}
}
