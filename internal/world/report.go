package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report is what a run came to.
type Report struct {
	Seed                      uint64
	Hash                      uint64 // over all events, in their order
	Events, Faults, Kinds     int
	Attempts, Gets, Deaths    int
	Moved                     int // records of owners' logs
	Lives                     int // of all nodes
	Shared, Passed            int // reads of objects of other nodes' jobs that gave a value; and of these, by references that came in a value of a further job
	Took                      time.Duration
	Spilled, Restored, Remade uint64
	ByKind                    map[string]int
}

func (w *World) report() Report {
	r := Report{
		Seed: w.cfg.Seed, Hash: w.log.hash, Events: w.steps, Kinds: len(w.plan.counts), Attempts: w.model.began, Gets: w.model.gets, Deaths: w.model.deaths, Moved: w.model.moved, Shared: w.model.shared, Passed: w.model.passed,
		Took: time.Duration(w.now - begin), ByKind: maps.Clone(w.plan.counts),
	}
	for _, n := range w.plan.counts {
		r.Faults += n
	}
	for _, n := range w.nodes {
		r.Lives += int(n.numbers.lives)
		c := n.store.core.Counters()
		r.Spilled += c.SpilledObjects
		r.Restored += c.Restores
	}
	return r
}

// String is a line of a report.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d events in %v, %d attempts, %d gets, %d lives, %d spilled, %d restored, %d records moved, %d faults of %d kinds:", r.Seed, r.Events, r.Took.Round(time.Millisecond),
		r.Attempts, r.Gets, r.Lives, r.Spilled, r.Restored, r.Moved, r.Faults, r.Kinds)
	for _, k := range slices.Sorted(maps.Keys(r.ByKind)) {
		fmt.Fprintf(&b, " %s %d", k, r.ByKind[k])
	}
	return b.String()
}
