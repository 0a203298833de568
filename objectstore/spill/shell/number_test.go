package shell

import (
	"errors"
	"testing"

	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/storage"
)

// Targets are found again wherever they are in the list; one that is not in it is missing, and found when it is back.
func TestTargetsAreKnownByIdentity(t *testing.T) {
	a, b, c := diskDir(t), diskDir(t), diskDir(t)
	life := func(urls ...string) *Spiller {
		return open(t, func(cfg *Config) {
			cfg.URLs, cfg.Node, cfg.Restarts, cfg.Keep = urls, "one", true, true
		})
	}
	all := items(8, 700_000)
	s := life(a, b)
	var locs []spill.Location
	for i := range all {
		locs = append(locs, mustWrite(t, s, all[i:i+1])...)
	}
	numbers := map[uint16]bool{}
	for _, l := range locs {
		numbers[l.Target] = true
	}
	if len(numbers) != 2 {
		t.Fatalf("both targets are written to: %v", numbers)
	}
	shut(t, s)
	for _, urls := range [][]string{{b, a}, {c, a, b}, {b, c, a}} {
		s = life(urls...)
		s.Recover(locs)
		for i, l := range locs {
			mustRead(t, s, l, all[i].Data)
		}
		shut(t, s)
	}
	s = life(c, a)
	missing := 0
	for i, l := range locs {
		if err := testkit.Receive(t, "read", readLater(s, l, make([]byte, l.Size))); errors.Is(err, spill.ErrNoTarget) {
			missing++
		} else if err != nil {
			t.Errorf("read %d: %v", i, err)
		}
	}
	if missing == 0 || missing == len(locs) {
		t.Errorf("%d of %d are missing without one of two targets", missing, len(locs))
	}
	s.Remove(locs)
	shut(t, s)
}

// A session that is another node's is refused, and nothing of it is deleted.
func TestAnotherNodesSessionIsRefused(t *testing.T) {
	dir := diskDir(t)
	s := open(t, func(cfg *Config) { cfg.Dir, cfg.Node, cfg.Restarts, cfg.Keep = dir, "one", true, true })
	all := items(1, 700_000)
	locs := mustWrite(t, s, all)
	shut(t, s)
	cfg := Default("test")
	cfg.Dir, cfg.Node = dir, "two"
	if _, err := Open(cfg); !errors.Is(err, storage.ErrForeign) {
		t.Fatalf("got %v, want ErrForeign", err)
	}
	s = open(t, func(cfg *Config) { cfg.Dir, cfg.Node, cfg.Restarts, cfg.Keep = dir, "one", true, true })
	s.Recover(locs)
	mustRead(t, s, locs[0], all[0].Data)
	shut(t, s)
}
