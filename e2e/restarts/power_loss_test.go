package restarts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mobula"
	"mobula/e2e/harness"
)

const bootPath = "/proc/sys/kernel/random/boot_id"

// anotherBoot has the machine look as if it had been started anew to this process and its children.
func anotherBoot(t *testing.T, id string) {
	t.Helper()
	path := filepath.Join(harness.TempDir(t), "boot")
	harness.Must(t, os.WriteFile(path, []byte(id+"\n"), 0o600))
	harness.Must(t, unix.Mount(path, bootPath, "", unix.MS_BIND, ""))
	t.Cleanup(func() { harness.Must(t, unix.Unmount(bootPath, unix.MNT_DETACH)) })
}

// The machine lost its power: of the store's directory on a disk the index came back, the segment as a hole. No object is read as zeros: those
// with a spilled copy are read from there, results are made again, a put that was in memory alone is lost and says so.
func TestBytesInMemoryAreNotTrustedAfterAPowerLoss(t *testing.T) {
	if !harness.InMounts(t) {
		return
	}
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	c, job := harness.Connect(t, ctx, p)
	const n = 1 << 18 // 2 MiB
	full := func(i int) []float64 {
		v := make([]float64, n)
		for k := range v {
			v[k] = float64(i + 1)
		}
		return v
	}
	var puts, results []mobula.Ref[[]float64]
	for i := range 12 { // 24 MiB: some are spilled
		r, err := mobula.Put(job, full(i))
		harness.Must(t, err)
		puts = append(puts, r)
	}
	for i := range 2 {
		r := harness.Fill.Go(job, mobula.V(n), mobula.V(float64(i+1)))
		_, err := r.Get(job)
		harness.Must(t, err)
		results = append(results, r)
	}
	before, err := c.Status(job)
	harness.Must(t, err)
	if before.Store.OnlySpilled == 0 || before.Store.InMemory == 0 {
		t.Fatalf("before: %+v", before.Store)
	}

	p.Kill(t)
	segments, err := filepath.Glob(filepath.Join(cfg.StoreDir, "mobula-*"))
	harness.Must(t, err)
	for _, path := range segments {
		if !strings.HasSuffix(path, ".index") {
			harness.Must(t, os.Truncate(path, 0))
			harness.Must(t, os.Truncate(path, int64(cfg.Store)))
		}
	}
	anotherBoot(t, "00000000-1111-2222-3333-444444444444")
	harness.MustLaunch(t, cfg)
	there := 0
	for i, r := range append(puts, results...) {
		made := i >= len(puts)
		v, err := r.Get(job)
		switch {
		case err != nil && (made || !errors.Is(err, mobula.ErrObjectLost)):
			t.Errorf("object %d: %v", i, err)
		case err != nil:
		case len(v) != n || v[0] != float64(i%len(puts)+1) || v[n-1] != v[0]:
			t.Fatalf("object %d: %d values, the first %v", i, len(v), v[0])
		case !made:
			there++
		}
	}
	if there < before.Store.OnlySpilled-len(results) {
		t.Errorf("%d puts are there of %d that were spilled", there, before.Store.OnlySpilled)
	}
}
