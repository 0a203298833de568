package languages

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

var (
	environ   = mobula.Register1("e2e/environ", func(_ context.Context, name string) (string, error) { return os.Getenv(name), nil })
	pyEnviron = mobula.PythonFunc1[string, string](harness.PythonHelpers, "environ")
)

type environed struct{}

var (
	environedType = mobula.RegisterActor0("e2e/environed", func(context.Context) (*environed, error) { return &environed{}, nil })
	environedGet  = mobula.RegisterMethod1(environedType, "Get", (*environed).Get)
)

func (*environed) Get(_ context.Context, name string) (string, error) { return os.Getenv(name), nil }

func init() {
	// An actor that stays, made by a process with an environment of its own.
	harness.DriverBodies["environed"] = func(ctx context.Context) error {
		a, err := environedType.Spawn(ctx, mobula.Named("e2e", "environed"), mobula.Detached(), mobula.MaxRestarts(-1), mobula.MaxTaskRetries(-1))
		if err != nil {
			return err
		}
		_, err = environedGet.Go(ctx, a, mobula.V("HOME")).Get(ctx)
		return err
	}
}

const (
	ofNode   = "MOBULA_E2E_SECRET_OF_NODE"
	ofDriver = "MOBULA_E2E_SECRET_OF_DRIVER"
)

// What a task runs with is its driver's environment, and nothing of the node's.
func TestWorkersHaveTheDriversEnvironment(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t), Env: []string{ofNode + "=aws", "HOME=/root/of/the/node"}})
	t.Setenv(ofDriver, "mine")
	t.Setenv("HOME", "/home/of/the/driver")
	_, ctx = harness.Connect(t, ctx, p)
	for name, is := range map[string]string{ofNode: "", ofDriver: "mine", "HOME": "/home/of/the/driver", "PATH": os.Getenv("PATH")} {
		if got, err := environ.Go(ctx, mobula.V(name)).Get(ctx); err != nil || got != is {
			t.Errorf("a Go task's %s is %q, %v, want %q", name, got, err, is)
		}
	}
}

func TestPythonWorkersHaveTheDriversEnvironment(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	opts := harness.Python(t)
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t), Env: []string{ofNode + "=aws"}})
	t.Setenv(ofDriver, "mine")
	_, ctx = connectPython(t, ctx, p, opts)
	for name, is := range map[string]string{ofNode: "", ofDriver: "mine"} {
		want(t, ctx, pyEnviron.Go(ctx, mobula.V(name)), is)
	}
}

// An actor has it still when its driver is gone, and the node was killed and started again elsewhere.
func TestARestartedActorHasItsDriversEnvironment(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t), Env: []string{ofNode + "=aws"}}
	p := harness.MustLaunch(t, cfg)
	t.Setenv(ofDriver, "mine")
	d := harness.LaunchDriver(t, p.Address, "environed")
	harness.Must(t, os.Unsetenv(ofDriver))
	d.Stop(t)
	files, err := filepath.Glob(filepath.Join(cfg.Dir, "jobs", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of jobs: %v, %v", files, err)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file with the driver's secrets: %v, %v", st.Mode(), err)
	}
	p.Kill(t)
	p = harness.MustLaunch(t, cfg)
	_, ctx = harness.Connect(t, ctx, p)
	a, err := mobula.GetActor[environed](ctx, "e2e", "environed")
	if err != nil {
		t.Fatal(err)
	}
	for name, is := range map[string]string{ofNode: "", ofDriver: "mine"} {
		if got, err := environedGet.Go(ctx, a, mobula.V(name)).Get(ctx); err != nil || got != is {
			t.Errorf("its %s is %q, %v, want %q", name, got, err, is)
		}
	}
}
