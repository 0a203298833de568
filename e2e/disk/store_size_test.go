package disk

import (
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// A node that is started again with another store size has every object of before, and says which size it has and why.
func TestAnotherStoreSizeLosesNothing(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	c, job := harness.Connect(t, ctx, p)
	var refs []mobula.Ref[[]float64]
	for i := range 4 {
		r, err := mobula.Put(job, make([]float64, 1<<18)) // 2 MiB
		harness.Must(t, err)
		refs = append(refs, r, harness.Fill.Go(job, mobula.V(1<<18), mobula.V(float64(i))))
	}
	for _, r := range refs {
		if v, err := r.Get(job); err != nil || len(v) != 1<<18 {
			t.Fatalf("before: %d, %v", len(v), err)
		}
	}
	for _, asked := range []uint64{64 << 20, 8 << 20} {
		p.Kill(t)
		cfg.Store = asked
		p = harness.MustLaunch(t, cfg)
		for i, r := range refs {
			if v, err := r.Get(job); err != nil || len(v) != 1<<18 {
				t.Errorf("object %d with %d bytes asked for: %d, %v", i, asked, len(v), err)
			}
		}
		s, err := c.Status(job)
		harness.Must(t, err)
		if s.Store.Limit != 32<<20 || s.Store.Asked != asked || !strings.Contains(s.Store.WhyLimit, "mapped") || s.Store.Lost != 0 {
			t.Errorf("status with %d bytes asked for: %+v", asked, s.Store)
		}
	}
}
