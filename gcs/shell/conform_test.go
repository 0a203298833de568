package shell

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"mobula/gcs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/remote"
)

// All implementations of Tables follow the same rules.
func TestTablesConform(t *testing.T) {
	t.Run("NATS", func(t *testing.T) {
		srv, nc, tables := openTest(t, t.TempDir())
		defer srv.Close()
		defer nc.Close()
		conform(t, tables)
	})
	t.Run("server of a cluster", func(t *testing.T) { conform(t, newCluster(t).server(1, nil).tables) })
	t.Run("service", func(t *testing.T) {
		c := newCluster(t)
		s := c.server(1, nil)
		s.desk.refuses = func(gcs.Effect, remote.Life, *gcs.HomeRecord, gcs.Record) error { return nil } // the test changes rows of several homes
		conform(t, c.node(trust.Data, 2, nil).tables)
	})
	t.Run("memory", func(t *testing.T) { conform(t, NewMemory()) })
}

// conform checks empty tables against their interface.
func conform(t *testing.T, tables Tables) {
	do := func(e gcs.Effect) gcs.Answered {
		t.Helper()
		a := tables.Do(t.Context(), e)
		if a.Err != nil {
			t.Fatalf("%+v: %v", e, a.Err)
		}
		return a
	}
	accepted := func(e gcs.Effect, want bool) uint64 {
		t.Helper()
		a := do(e)
		if a.Conflict == want || !a.Wrote {
			t.Fatalf("%+v is answered %+v", e, a)
		}
		return a.Revision
	}
	rec := actor("hits", "a")
	read := gcs.Read{ID: 7, Bucket: gcs.Actors, Key: rec.Key()}

	// A row is read as it was written, with its revision, which a compare-and-set needs.
	if a := do(read); a.Record != nil || a.Revision != 0 || a.ID != 7 {
		t.Fatalf("of no row is read %+v", a)
	}
	first := accepted(gcs.Write{Record: rec, Revision: 0}, true)
	accepted(gcs.Write{Record: rec, Revision: 0}, false)
	if a := do(read); a.Record != gcs.Record(rec) || a.Revision != first {
		t.Fatalf("read %+v", a)
	}
	rec.State = gcs.ActorAlive
	accepted(gcs.Write{Record: rec, Revision: int64(first) + 7}, false)
	second := accepted(gcs.Write{Record: rec, Revision: int64(first)}, true)
	if second <= first {
		t.Errorf("revision %d after %d", second, first)
	}
	accepted(gcs.Write{Record: rec, Revision: int64(first)}, false)
	accepted(gcs.Delete{Bucket: gcs.Actors, Key: rec.Key(), Revision: int64(first)}, false)
	if a := do(read); a.Record != gcs.Record(rec) || a.Revision != second {
		t.Fatalf("read %+v", a)
	}
	third := accepted(gcs.Write{Record: rec, Revision: -1}, true)
	accepted(gcs.Delete{Bucket: gcs.Actors, Key: rec.Key(), Revision: int64(third)}, true)
	if a := do(read); a.Record != nil {
		t.Fatalf("of a removed row is read %+v", a)
	}
	accepted(gcs.Write{Record: rec, Revision: int64(third)}, false)
	accepted(gcs.Write{Record: rec, Revision: 0}, true)
	accepted(gcs.Delete{Bucket: gcs.Actors, Key: rec.Key(), Revision: -1}, true)
	accepted(gcs.Delete{Bucket: gcs.Actors, Key: rec.Key(), Revision: -1}, true)

	// Of many that write at once by compare-and-set one wins each round.
	const writers, rounds = 8, 10
	var won [rounds]int
	var mu sync.Mutex
	for round := range rounds {
		at := do(gcs.Read{Bucket: gcs.Actors, Key: rec.Key()}).Revision
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				r := rec
				r.Type = fmt.Sprint(round, i)
				if a := tables.Do(t.Context(), gcs.Write{Record: r, Revision: int64(at)}); a.Err == nil && !a.Conflict {
					mu.Lock()
					won[round]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
	for round, n := range won {
		if n != 1 {
			t.Errorf("in round %d %d writers won", round, n)
		}
	}

	watched(t, tables, do)
}

// watched tries the watches of tables that have one actor.
func watched(t *testing.T, tables Tables, do func(gcs.Effect) gcs.Answered) {
	t.Helper()
	ctx := testkit.Within(t)
	var mu sync.Mutex
	var told []gcs.Changed
	news := make(chan struct{}, 1<<10)
	watch := func() {
		t.Helper()
		mu.Lock()
		told = nil
		mu.Unlock()
		err := tables.Watch(ctx, ctx, func(c gcs.Changed) {
			mu.Lock()
			told = append(told, c)
			mu.Unlock()
			news <- struct{}{}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	until := func(what string, is func([]gcs.Changed) bool) {
		t.Helper()
		for {
			mu.Lock()
			done := is(told)
			mu.Unlock()
			if done {
				return
			}
			select {
			case <-news:
			case <-ctx.Done():
				t.Fatalf("%s: told %+v", what, told)
			}
		}
	}
	do(gcs.Write{Record: homeRecord(1), Revision: -1})

	// When Watch returns, all rows have been reported; then come the changes, in order, with their revisions. The last change of a row is reported;
	// earlier ones may be left out.
	watch()
	mu.Lock()
	has := func(b gcs.Bucket) bool {
		return slices.ContainsFunc(told, func(c gcs.Changed) bool { return c.Bucket == b && c.Record != nil })
	}
	if len(told) != 2 || !has(gcs.Homes) || !has(gcs.Actors) {
		t.Errorf("first told %+v", told)
	}
	mu.Unlock()
	const n = 20
	for i := range n {
		r := homeRecord(1)
		r.Epoch = uint64(i)
		do(gcs.Write{Record: r, Revision: -1})
	}
	do(gcs.Delete{Bucket: gcs.Homes, Key: "1", Revision: -1})
	until("a row that is gone", func(all []gcs.Changed) bool { return all[len(all)-1].Record == nil })
	mu.Lock()
	changes := told[2:]
	for i, c := range changes {
		gone := i == len(changes)-1
		if c.Bucket != gcs.Homes || c.Key != "1" || (c.Record == nil) != gone || i > 0 && c.Revision <= changes[i-1].Revision ||
			!gone && i > 0 && c.Record.(gcs.HomeRecord).Epoch <= changes[i-1].Record.(gcs.HomeRecord).Epoch {
			t.Errorf("change %d is %+v", i, c)
		}
	}
	if len(changes) > n+1 {
		t.Errorf("%d changes are told as %d", n+1, len(changes))
	}
	before := len(told)
	mu.Unlock()

	// After Close it reports nothing; a new watch begins with the present rows.
	tables.Close()
	do(gcs.Write{Record: homeRecord(2), Revision: -1})
	mu.Lock()
	if len(told) != before {
		t.Errorf("after the end it told %+v", told[before:])
	}
	mu.Unlock()
	watch()
	shows := func(n ids.Home) func([]gcs.Changed) bool {
		return func(all []gcs.Changed) bool {
			return slices.ContainsFunc(all, func(c gcs.Changed) bool { return c.Record == gcs.Record(homeRecord(n)) })
		}
	}
	until("what is there", shows(2))
	do(gcs.Write{Record: homeRecord(3), Revision: -1})
	until("what follows", shows(3))
	tables.Close()
	mu.Lock()
	defer mu.Unlock()
	if rows := slices.DeleteFunc(told, func(c gcs.Changed) bool { return c.Record == nil }); len(rows) != 3 {
		t.Errorf("of an actor and two homes it told %+v", rows)
	}
}
