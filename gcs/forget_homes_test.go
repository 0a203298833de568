package gcs

import (
	"slices"
	"testing"
	"time"

	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/trust"
)

// The home of a program's node is forgotten a day after the node has gone. The highest home stays, so that none is given out twice, and so do those of other nodes, and of one
// that is back.
func TestHomesOfProgramsThatEndedAreForgotten(t *testing.T) {
	const day = 24 * time.Hour
	b := newBench(t)
	rows := make(map[string]HomeRecord)
	begins := func(h ids.Home, epoch uint64) {
		r := HomeRecord{Row: register.Row{Home: h, Epoch: epoch}}
		rows[r.Key()] = r
		b.step(Changed{Bucket: Homes, Key: r.Key(), Record: r})
	}
	runs := func(h ids.Home, role trust.Role) {
		begins(h, 1)
		b.step(Changed{Bucket: Nodes, Key: h.String(), Record: NodeRecord{Home: h, Epoch: 1, Role: string(role)}})
	}
	ends := func(h ids.Home) { b.step(Changed{Bucket: Nodes, Key: h.String()}) }
	look := func(after time.Duration) (removed []string) {
		b.now += after
		for _, e := range slices.Clone(b.core.Step(int64(b.now), Beat{})) {
			read, ok := e.(Read)
			if !ok || read.Bucket != Homes {
				continue
			}
			answer := Answered{ID: read.ID}
			if r, ok := rows[read.Key]; ok {
				answer.Record, answer.Revision = r, 9
			}
			for _, e := range slices.Clone(b.core.Step(int64(b.now), answer)) {
				if d, ok := e.(Delete); ok && d.Bucket == Homes && d.Revision == 9 {
					removed = append(removed, d.Key)
					delete(rows, d.Key)
					b.step(Answered{ID: d.ID, Wrote: true})
					b.step(Changed{Bucket: Homes, Key: d.Key})
				}
			}
		}
		return removed
	}
	for h, role := range []trust.Role{10: trust.Driver, 11: trust.Data, 12: trust.Driver, 13: trust.Driver, 14: trust.Driver, 15: trust.Driver} {
		if role != "" {
			runs(ids.Home(h), role)
		}
	}
	for h := ids.Home(10); h <= 15; h++ {
		if h != 14 { // it runs on
			ends(h)
		}
	}
	rows["12"] = HomeRecord{Row: register.Row{Home: 12, Epoch: 2}} // it is back, and this judge has not heard of it
	if gone := look(day - time.Minute); len(gone) != 0 {
		t.Errorf("within a day %v are removed", gone)
	}
	if gone := look(time.Minute); !slices.Equal(gone, []string{"10", "13"}) {
		t.Errorf("removed are %v, want the programs' that ended, and are not the highest", gone)
	}
	if gone := look(day); len(gone) != 0 {
		t.Errorf("then %v are removed", gone)
	}
	var next ids.Home
	for _, e := range b.core.Step(int64(b.now), Request{1, Begin{Claim: register.Claim{Identity: "new", Life: "first"}}}) {
		if w, ok := e.(Write); ok {
			next = w.Record.(HomeRecord).Home
		}
	}
	if next != 16 {
		t.Errorf("a new directory gets home %v", next)
	}
	runs(16, trust.Driver)
	if gone := look(time.Minute); !slices.Equal(gone, []string{"15"}) {
		t.Errorf("removed are %v, want the one that was the highest", gone)
	}
}
