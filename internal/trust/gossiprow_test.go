package trust

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// Whenever rotations begin and however slowly nodes hear of them, each node can read what every other one writes. In the end all have one key, the last that
// was wanted, and no generation has encrypted twice.
func TestARotationOfKeysIsReadable(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		row := FirstGossip()
		nodes := make([]GossipRow, rapid.IntRange(1, 5).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i] = row
		}
		used, wants := []uint64{row.Uses}, 0
		for step := 0; row.Rotating() || wants < 4; step++ {
			switch rapid.SampledFrom([]string{"rotate", "hear", "hear", "step"}).Draw(t, "what") {
			case "rotate":
				if wants++; wants <= 4 {
					row = row.Rotated().Next(time.Unix(int64(step), 0), false)
				}
			case "hear":
				nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "node")] = row
			case "step":
				row = row.Next(time.Unix(int64(step), 0), !slices.ContainsFunc(nodes, func(n GossipRow) bool { return n.Stage != row.Stage }))
			}
			if row.Uses != used[len(used)-1] {
				if slices.Contains(used, row.Uses) {
					t.Fatalf("generation %d encrypts again, after %v", row.Uses, used)
				}
				used = append(used, row.Uses)
			}
			for _, a := range append(nodes, row) {
				for _, b := range nodes {
					if !slices.Contains(b.Keys(), a.Uses) {
						t.Fatalf("who has %+v cannot read who has %+v", b, a)
					}
				}
			}
		}
		if row.Also != 0 || row.Uses != row.Wanted || row.Uses < 2 {
			t.Errorf("it ends as %+v", row)
		}
	})
}

// A key that nobody has been given yet is new enough for whoever wants a new one; one that was given out is not.
func TestAKeyThatIsWantedIsKnownToNobody(t *testing.T) {
	row := FirstGossip().Rotated()
	if row.Wanted != 2 || row.Rotated() != row {
		t.Errorf("wanted twice: %+v", row.Rotated())
	}
	row = row.Next(time.Time{}, false) // generation 2 is given out
	if next := row.Rotated(); next.Wanted != 3 || next.Rotated() != next {
		t.Errorf("wanted during a rotation: %+v", next)
	}
}
