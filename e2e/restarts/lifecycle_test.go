package restarts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// diary is an actor that writes down in a file that it was made, and closed.
type diary struct{ path string }

func newDiary(_ context.Context, path string) (*diary, error) {
	d := &diary{path}
	return d, d.write("made")
}

func (d *diary) write(what string) error {
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was written
	_, err = f.WriteString(what + "\n")
	return err
}

func (d *diary) Note(_ context.Context, what string) (int, error) { return os.Getpid(), d.write(what) }

func (d *diary) Close() error { return d.write("closed") }

var (
	diaries   = mobula.RegisterActor1("e2e/diary", newDiary)
	diaryNote = mobula.RegisterMethod1(diaries, "Note", (*diary).Note)

	kept []mobula.ActorRef[diary] // of the driver process
)

const diaryEnv = "MOBULA_E2E_DIARY"

func init() {
	// diaries makes one of each kind.
	harness.DriverBodies["diaries"] = func(ctx context.Context) error {
		dir := os.Getenv(diaryEnv)
		for name, opts := range map[string][]mobula.ActorOption{
			"shared": nil, "own": {mobula.Isolated()}, "detached": {mobula.Named("e2e", "diary"), mobula.Detached()},
		} {
			a, err := diaries.Spawn(ctx, mobula.V(filepath.Join(dir, name)), opts...)
			if err != nil {
				return err
			}
			if _, err := diaryNote.Go(ctx, a, mobula.V("noted")).Get(ctx); err != nil {
				return err
			}
			kept = append(kept, a)
		}
		return nil
	}
}

func wrote(t *testing.T, ctx context.Context, path, want string) {
	t.Helper()
	got := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s has %q, want %q", path, got, want)
		}
	}()
	harness.Eventually(t, ctx, filepath.Base(path)+" was written", func() bool {
		b, _ := os.ReadFile(path)
		got = strings.Join(strings.Fields(string(b)), " ")
		return got == want
	})
}

// A driver that leaves, or is killed, takes its actors along: they are closed before their processes go. A detached one stays, and is
// closed when its node stops; after a kill of the node nothing is closed.
func TestActorsAreClosedWithTheirJobAndTheirNode(t *testing.T) {
	for _, end := range []string{"stopped", "killed"} {
		t.Run(end, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			dir := t.TempDir()
			t.Setenv(diaryEnv, dir)
			p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)})
			d := harness.LaunchDriver(t, p.Address, "diaries")
			if end == "stopped" {
				d.Stop(t)
			} else {
				d.Kill(t)
			}
			wrote(t, ctx, filepath.Join(dir, "shared"), "made noted closed")
			wrote(t, ctx, filepath.Join(dir, "own"), "made noted closed")
			if end == "stopped" {
				p.Stop(t)
				wrote(t, ctx, filepath.Join(dir, "detached"), "made noted closed")
			} else {
				p.Kill(t)
				wrote(t, ctx, filepath.Join(dir, "detached"), "made noted")
			}
		})
	}
}

// A watch goes on over a kill of the node: it tells that the actor restarted or died meanwhile, and every death.
func TestAWatchOutlivesTheNode(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	dir := t.TempDir()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, ctx = harness.Connect(t, ctx, p)
	mortal, err := diaries.Spawn(ctx, mobula.V(filepath.Join(dir, "mortal")))
	if err != nil {
		t.Fatal(err)
	}
	lasting, err := diaries.Spawn(ctx, mobula.V(filepath.Join(dir, "lasting")), mobula.MaxRestarts(3))
	if err != nil {
		t.Fatal(err)
	}
	if err := lasting.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	killed := false
	for ev, err := range mobula.Watch(ctx, mortal) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Phase == mobula.ActorAlive && !killed {
			killed = true
			p.Kill(t)
			harness.MustLaunch(t, cfg)
		}
		if ev.Phase == mobula.ActorDead && !errors.Is(ev.Err, mobula.ErrActorDied) {
			t.Errorf("it died of %v", ev.Err)
		}
	}
	for ev, err := range mobula.Watch(ctx, lasting) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Phase == mobula.ActorAlive {
			if err := lasting.Stop(ctx); err != nil {
				t.Errorf("its stop: %v", err)
			}
		}
	}
	wrote(t, ctx, filepath.Join(dir, "lasting"), "made made closed")
	wrote(t, ctx, filepath.Join(dir, "mortal"), "made")
}
