package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/oplog"
	"mobula/wire"
)

// BenchmarkRestart is the start of a job's owner whose log has 300,000 queued tasks.
func BenchmarkRestart(b *testing.B) {
	const n, batch = 300_000, 512
	dir := b.TempDir()
	log, err := oplog.Open(dir, oplog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := newBenchWorld(0)
	w.log = log
	msgs := w.specs(n)
	var has []ids.ObjectID
	for i := 0; i < n; i += batch {
		w.step(FromClient{benchDriver, msgs[i:min(i+batch, n)]})
	}
	for _, m := range msgs {
		has = append(has, m.(*wire.Submit).Spec.ID.Return(0))
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if log, err = oplog.Open(dir, oplog.Options{}); err != nil {
			b.Fatal(err)
		}
		var damage error
		c, err := Rebuild(Config{Job: 1}, func(yield func(uint64, []byte) bool) { damage = log.Replay(yield) })
		if err != nil || damage != nil {
			b.Fatal(err, damage)
		}
		w := &benchWorld{c: c, now: w.now, log: log}
		w.step(Restored{Epoch: 1, Clients: []ClientJoined{{Client: benchDriver, Role: wire.RoleDriver}}})
		w.step(FromClient{benchDriver, []wire.Msg{&wire.Holdings{Component: wire.ComponentOwner, Epoch: 1, Handles: has}}})
		if c.tasks.n != n || c.recovering {
			b.Fatalf("%d tasks of %d, recovering %v", c.tasks.n, n, c.recovering)
		}
		if err := log.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
