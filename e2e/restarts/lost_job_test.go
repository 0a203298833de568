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
	"mobula/internal/testkit"
	"mobula/raylet/oplog"
)

// A job whose log or file is damaged, or of a newer version, is set aside and named when its node starts again. The other jobs go on,
// its names are free, and its driver hears what became of it.
func TestADamagedJobIsSetAside(t *testing.T) {
	segmentOf := func(t *testing.T, dir string) string {
		files, err := filepath.Glob(filepath.Join(dir, "owner", "1", "*.oplog"))
		if err != nil || len(files) == 0 {
			t.Fatalf("segments: %v, %v", files, err)
		}
		return files[0]
	}
	poke := func(t *testing.T, path string, at int64) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		harness.Must(t, err)
		_, err = f.WriteAt([]byte{0xee, 0xee, 0xee, 0xee}, at)
		harness.Must(t, err)
		harness.Must(t, f.Close())
	}
	for name, damage := range map[string]func(t *testing.T, dir string){
		"a record in the middle": func(t *testing.T, dir string) { poke(t, segmentOf(t, dir), 64+8+2) },
		"the header":             func(t *testing.T, dir string) { poke(t, segmentOf(t, dir), 0) },
		"the job's file": func(t *testing.T, dir string) {
			harness.Must(t, os.WriteFile(filepath.Join(dir, "jobs", "1.json"), []byte("{"), 0o600))
		},
		"a record of a newer version": func(t *testing.T, dir string) {
			l, err := oplog.Open(filepath.Join(dir, "owner", "1"), oplog.Options{})
			harness.Must(t, err)
			harness.Must(t, l.Replay(func(uint64, []byte) bool { return true }))
			_, err = l.Append([]byte{250, 1, 2, 3})
			harness.Must(t, err)
			harness.Must(t, l.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 << 20, StoreDir: harness.TempDir(t)}
			p := harness.MustLaunch(t, cfg)
			_, lost := harness.Connect(t, ctx, p)
			c, other := harness.Connect(t, ctx, p)
			status := func() mobula.NodeStatus {
				s, err := c.Status(other)
				harness.Must(t, err)
				return s
			}
			for _, job := range []context.Context{lost, other} { // 1 and 2
				if v, err := harness.Add.Go(job, mobula.V(1.0), mobula.V(2.0)).Get(job); err != nil || v != 3 {
					t.Fatalf("before: %v, %v", v, err)
				}
			}
			a, err := harness.CounterType.Spawn(lost, mobula.V(0), mobula.Named("e2e", "lost"), mobula.Detached())
			harness.Must(t, err)
			harness.Must(t, a.Ready(lost))
			gone, err := mobula.Put(lost, make([]float64, 1<<16))
			harness.Must(t, err)
			stays, err := mobula.Put(other, make([]float64, 1<<16))
			harness.Must(t, err)
			ref := harness.Fill.Go(other, mobula.V(1<<16), mobula.V(7.0))
			if _, err := ref.Get(other); err != nil {
				t.Fatal(err)
			}

			p.Kill(t)
			damage(t, cfg.Dir)
			p = harness.MustLaunch(t, cfg)
			for _, r := range []mobula.Ref[[]float64]{stays, ref} {
				if v, err := r.Get(other); err != nil || len(v) != 1<<16 {
					t.Errorf("an object of the other job: %d, %v", len(v), err)
				}
			}
			short, end := context.WithTimeout(lost, testkit.Patience())
			defer end()
			if _, err := gone.Get(short); !errors.Is(err, mobula.ErrOwnerDied) || !strings.Contains(err.Error(), filepath.Join(cfg.Dir, "lost", "1")) {
				t.Errorf("the lost job's driver is told %v", err)
			}
			s := status()
			if len(s.Lost) != 1 || s.Lost[0].ID != "1" || s.Lost[0].Why == "" || s.Lost[0].Path != filepath.Join(cfg.Dir, "lost", "1") {
				t.Fatalf("status: %+v", s.Lost)
			}
			if _, err := os.Stat(filepath.Join(s.Lost[0].Path, "log")); err != nil {
				t.Errorf("its log is not kept: %v", err)
			}
			harness.Eventually(t, ctx, "the lost actor's name is free", func() bool {
				b, err := harness.CounterType.Spawn(other, mobula.V(0), mobula.Named("e2e", "lost"))
				if err != nil {
					return false
				}
				return b.Ready(other) == nil
			})
			if name == "the header" { // the driver lives: what it had pinned stays for as long as it might have come back
				harness.Eventually(t, ctx, "the lost job's objects are gone", func() bool { return status().Store.Objects <= 2 })
			}

			// Its number is not given again, and it is named for as long as it lies there.
			p.Kill(t)
			harness.MustLaunch(t, cfg)
			if s := status(); len(s.Lost) != 1 {
				t.Errorf("in the life after: %+v", s.Lost)
			}
			if v, err := stays.Get(other); err != nil || len(v) != 1<<16 {
				t.Errorf("in the life after: %d, %v", len(v), err)
			}
		})
	}
}
