package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"mobula"
	"mobula/mobulatest"
)

var e2eSampled = mobula.Register0("e2e/sampled", func(ctx context.Context) (bool, error) {
	return trace.SpanContextFromContext(ctx).IsSampled(), nil
})

// configured gives the process a configuration file, and no other settings but the test's own.
func configured(t *testing.T, yaml string) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "MOBULA_") && !strings.HasPrefix(name, "MOBULA_TEST_") {
			t.Setenv(name, "")
		}
	}
	path := filepath.Join(t.TempDir(), "mobula.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MOBULA_CONFIG", path)
}

// What a program does not say itself comes from the environment, then from the file.
func TestAnEmbeddedNodeIsConfiguredByEnvironmentAndFile(t *testing.T) {
	logFile := filepath.Join(t.TempDir(), "node.log")
	configured(t, `
name: from-file
namespace: of-file
cpus: 7
store: {size: 32MiB}
resources: {tpu: 1.5}
metrics: {address: "127.0.0.1:0"}
events: {ring: 0}
log: {level: debug, file: `+logFile+`}
`)
	t.Setenv("MOBULA_CPUS", "3")
	t.Setenv("MOBULA_STORE_SIZE", "48MiB")
	t.Setenv("MOBULA_TRACE_RATIO", "1")
	c := mobulatest.Start(t, mobula.WithStore(16<<20))
	ctx := c.Context(t.Context())
	s, err := c.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	who, err := e2eWho.Go(ctx).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s.Node != "from-file" || s.Resources["tpu"].Total != 1.5 || who.Namespace != "of-file" {
		t.Errorf("the file does not count: %+v", s)
	}
	if s.Resources["CPU"].Total != 3 {
		t.Errorf("%v CPUs: the environment goes before the file", s.Resources["CPU"].Total)
	}
	if s.Store.Limit != 16<<20 {
		t.Errorf("a store of %d bytes: the program's option goes first", s.Store.Limit)
	}
	resp, err := http.Get(s.Metrics) //nolint:noctx // the test's own node
	if err != nil {
		t.Fatalf("no metrics at %q: %v", s.Metrics, err)
	}
	_ = resp.Body.Close() // that it refuses who has no token is enough
	http.DefaultClient.CloseIdleConnections()
	if on, err := e2eSampled.Go(ctx).Get(ctx); err != nil || !on {
		t.Errorf("the task is traced: %v, %v; the share is 1", on, err)
	}
	if s, err = c.Status(ctx); err != nil || s.Events.Recorded != 0 {
		t.Errorf("events %+v, %v: the file turns them off", s.Events, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(logFile); err != nil || !strings.Contains(string(text), "level=DEBUG") {
		t.Errorf("the log has %q, %v", text, err)
	}
}

func TestTheShareOfTracedTasksMayBeNone(t *testing.T) {
	configured(t, "trace.ratio: 0\n")
	ctx := mobulatest.Context(t)
	for range 300 { // of which the default share would trace three
		if on, err := e2eSampled.Go(ctx).Get(ctx); err != nil || on {
			t.Fatalf("a task is traced: %v, %v", on, err)
		}
	}
}

// Every mistake is named, with what was probably meant, before anything is started.
func TestAnEmbeddedNodeRefusesUnknownSettings(t *testing.T) {
	configured(t, "store:\n  sise: 1GiB\n")
	t.Setenv("MOBULA_CPU", "2")
	dir := filepath.Join(t.TempDir(), "n")
	c, err := mobula.Start(t.Context(), mobula.WithDir(dir))
	if err == nil {
		_ = c.Close(t.Context()) // the test has failed
	}
	if !errors.Is(err, mobula.ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
	for _, want := range []string{`"store.sise"`, "store.size?", `"MOBULA_CPU"`, "MOBULA_CPUS?", os.Getenv("MOBULA_CONFIG")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %s", err, want)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a node was begun in %s: %v", dir, err)
	}
}

// The tasks of a driver are in its namespace, wherever they run.
func TestTasksAreInTheirDriversNamespace(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithProcesses(), mobula.WithCPUs(1), mobula.WithNamespace("of-node"))
	for option, want := range map[string]string{"of-driver": "of-driver", "": "of-node"} {
		d, err := mobula.Connect(t.Context(), c.Address(), mobula.ConnectNamespace(option))
		if err != nil {
			t.Fatal(err)
		}
		ctx := d.Context(t.Context())
		if who, err := e2eWho.Go(ctx).Get(ctx); err != nil || who.Namespace != want {
			t.Errorf("a task of a driver in %q is in %q: %v", option, who.Namespace, err)
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
