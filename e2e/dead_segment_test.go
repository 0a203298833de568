package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
)

// A killed node's segment is removed by the next node of the same user, whatever its directory is, but not one of a node that lives, one whose
// node has a job to come back to, or another user's.
func TestTheNextNodeRemovesADeadOnesSegment(t *testing.T) {
	ctx, cancel := limit(t)
	defer cancel()
	storeDir := tempDir(t)
	cfg := func() nodeConfig {
		return nodeConfig{Dir: tempDir(t), CPUs: 1, Store: 4 << 20, StoreDir: storeDir}
	}
	segments := func() (out []string) {
		for _, f := range filesOf(storeDir) {
			if !strings.HasSuffix(f, ".index") {
				out = append(out, f)
			}
		}
		return out
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
	idle := mustLaunch(t, cfg())
	deadIdle := alone(nil)
	idle.kill(t)

	awaitedCfg := cfg()
	awaited := mustLaunch(t, awaitedCfg)
	if _, err := os.Stat(deadIdle); err == nil {
		t.Error("a dead node's segment is left")
	}
	awaitedSegment := alone(nil)
	_, job := connect(t, ctx, awaited)
	ref, err := mobula.Put(job, make([]float64, 1<<16))
	must(t, err)
	awaited.kill(t)

	mustLaunch(t, cfg()) // lives
	live := alone([]string{awaitedSegment})
	theirs := filepath.Join(storeDir, filepath.Base(live)+"x")
	for _, f := range []string{theirs, theirs + ".index"} {
		b, err := os.ReadFile(strings.Replace(f, theirs, awaitedSegment, 1))
		must(t, err)
		must(t, os.WriteFile(f, b, 0o600))
		must(t, os.Chown(f, 65533, 65533))
	}
	mustLaunch(t, cfg())
	for what, path := range map[string]string{"a live node's": live, "an awaited node's": awaitedSegment, "another user's": theirs} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s segment: %v", what, err)
		}
	}
	mustLaunch(t, awaitedCfg)
	if v, err := ref.Get(job); err != nil || len(v) != 1<<16 {
		t.Errorf("its object: %d, %v", len(v), err)
	}
}
