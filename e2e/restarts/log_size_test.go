package restarts

import (
	"context"
	"path/filepath"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// noteBulky notes its number down. Its argument is so large that few calls fill a segment of their job's log.
var noteBulky = mobula.Register3("e2e/note-bulky", func(_ context.Context, file string, n int, _ []byte) (int, error) { return n, appendLine(file, n) },
	mobula.Retries(0))

// A job keeps an object in each segment of its log, and lets go of all else. Its log stays small. When the node was killed what was kept
// is there, and nothing that was let go of runs again.
func TestTheLogOfALongJobStaysSmall(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 64 * harness.MiB, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, ctx = harness.Connect(t, ctx, p)
	const lives, rounds, tasks, bulk, bound = 3, 12, 100, 16 << 10, 24 * harness.MiB // 57 MiB of records
	file := filepath.Join(harness.TempDir(t), "ran")
	var held []mobula.Ref[int]
	for life := range lives {
		for range rounds {
			kept, err := mobula.Put(ctx, len(held))
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, kept)
			var refs []mobula.Ref[int]
			for i := range tasks {
				refs = append(refs, noteBulky.Go(ctx, mobula.V(file), mobula.V(len(held)*tasks+i), mobula.V(make([]byte, bulk))))
			}
			for _, ref := range refs {
				if _, err := ref.Get(ctx); err != nil {
					t.Fatal(err)
				}
				ref.Release()
			}
		}
		harness.Eventually(t, ctx, "the log is small", func() bool { return bytesIn(t, filepath.Join(cfg.Dir, "owner")) < bound })
		t.Logf("life %d: the log takes %d KiB", life, bytesIn(t, filepath.Join(cfg.Dir, "owner"))>>10)
		p.Kill(t)
		p = harness.MustLaunch(t, cfg)
		for i, ref := range held {
			if v, err := ref.Get(ctx); err != nil || v != i {
				t.Fatalf("object %d, after kill %d: %d, %v", i, life+1, v, err)
			}
		}
	}
	ran := linesOf(t, file)
	for n, times := range ran {
		if times > 1 {
			t.Errorf("task %d ran %d times", n, times)
		}
	}
	if len(ran) != lives*rounds*tasks {
		t.Errorf("%d tasks ran, of %d", len(ran), lives*rounds*tasks)
	}
}
