package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/oplog"
	"mobula/wire"
)

// BenchmarkBurst is the life of many simple tasks that are all submitted before the first is
// asked for: nothing is in a cache when it is needed again. Effects go to a log as those of a
// node do. The clients' messages are made outside the timer.
func BenchmarkBurst(b *testing.B) {
	const n, batch = 100_000, 512
	w := newBenchWorld(2)
	log, err := oplog.Open(b.TempDir(), oplog.Options{Unlink: true})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	w.log = log
	b.ReportAllocs()
	for left := 0; b.Loop(); left-- {
		if left > 0 {
			continue // of a burst that is over
		}
		left = n
		b.StopTimer()
		subs := w.specs(n)
		gets, rel := make([]wire.Msg, n), make([]ids.ObjectID, n)
		for j, m := range subs {
			rel[j] = m.(*wire.Submit).Spec.ID.Return(0)
			gets[j] = &wire.Get{ID: rel[j], Fetch: true}
		}
		b.StartTimer()
		for j := 0; j < n; j += batch {
			w.step(FromClient{benchDriver, subs[j:min(j+batch, n)]})
		}
		for j := 0; j < n; j += batch {
			w.step(FromClient{benchDriver, gets[j:min(j+batch, n)]})
		}
		w.runWorker()
		if len(w.res) != n {
			b.Fatalf("%d of %d gets were answered", len(w.res), n)
		}
		clear(w.res)
		w.res = w.res[:0]
		for j := 0; j < n; j += batch {
			w.step(FromClient{benchDriver, []wire.Msg{&wire.Release{IDs: rel[j:min(j+batch, n)]}}})
		}
	}
}
