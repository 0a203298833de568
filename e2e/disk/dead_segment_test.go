package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// A killed node's segment is removed by the next node of the same user, whatever its directory is, but not one of a node that lives, one whose
// node has a job to come back to, or another user's.
func TestTheNextNodeRemovesADeadOnesSegment(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	storeDir := harness.TempDir(t)
	cfg := func() harness.NodeConfig {
		return harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 1, Store: 4 << 20, StoreDir: storeDir}
	}
	segments := func() (out []string) { // each by its index, which says of a node that it has left one
		for _, f := range harness.FilesOf(storeDir) {
			if path, ok := strings.CutSuffix(f, ".index"); ok {
				out = append(out, path)
			}
		}
		return out
	}
	filesOfJobs := func(path string) (n int) {
		for _, f := range harness.FilesOf(storeDir) {
			if strings.HasPrefix(f, path+".job") {
				n++
			}
		}
		return n
	}
	alone := func(before []string) string { // the one that came
		for _, f := range segments() {
			if !strings.Contains(strings.Join(before, " "), f) {
				return f
			}
		}
		t.Fatalf("no segment came to %v", before)
		return ""
	}
	idle := harness.MustLaunch(t, cfg())
	deadIdle := alone(nil)
	harness.Must(t, os.WriteFile(deadIdle+".job7-0011223344556677", nil, 0o600)) // of a job that is over
	idle.Kill(t)

	awaitedCfg := cfg()
	awaited := harness.MustLaunch(t, awaitedCfg)
	if _, err := os.Stat(deadIdle + ".index"); err == nil || filesOfJobs(deadIdle) > 0 {
		t.Errorf("a dead node's segment is left: %v", harness.FilesOf(storeDir))
	}
	awaitedSegment := alone(nil)
	_, job := harness.Connect(t, ctx, awaited)
	ref, err := mobula.Put(job, make([]float64, 1<<16))
	harness.Must(t, err)
	awaited.Kill(t)

	harness.MustLaunch(t, cfg()) // lives
	live := alone([]string{awaitedSegment})
	theirs := filepath.Join(storeDir, filepath.Base(live)+"x")
	b, err := os.ReadFile(awaitedSegment + ".index")
	harness.Must(t, err)
	for _, f := range []string{theirs + ".job1-00", theirs + ".index"} {
		harness.Must(t, os.WriteFile(f, b, 0o600))
		harness.Must(t, os.Chown(f, 65533, 65533))
	}
	harness.MustLaunch(t, cfg())
	for what, path := range map[string]string{"a live node's": live, "an awaited node's": awaitedSegment, "another user's": theirs} {
		if _, err := os.Stat(path + ".index"); err != nil {
			t.Errorf("%s segment: %v", what, err)
		}
	}
	harness.MustLaunch(t, awaitedCfg)
	if v, err := ref.Get(job); err != nil || len(v) != 1<<16 {
		t.Errorf("its object: %d, %v", len(v), err)
	}
}
