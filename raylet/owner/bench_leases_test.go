package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// BenchmarkManyLeases is 100,000 tasks over 1,000 leases on a hundred nodes, whose workers each answer by themselves. Short tasks are pushed ahead, long ones are
// not; the messages of the workers are made inside the timer.
func BenchmarkManyLeases(b *testing.B) {
	for name, ran := range map[string]int64{"short": 100_000, "long": 10_000_000} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				w := newManyLeases(1_000, 100, ran)
				msgs := w.specs(100_000)
				b.StartTimer()
				w.step(FromClient{benchDriver, msgs})
				w.run(ran)
				if n := w.c.stats.Finished; n != 100_000 {
					b.Fatalf("%d tasks have run", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/task")
		})
	}
}

// newManyLeases is a core with leases of one class on workers of many nodes, which knows how long its tasks run.
func newManyLeases(leases, nodes int, ran int64) *benchWorld {
	w := newBenchWorld(0)
	first := w.specs(1)
	w.step(FromClient{benchDriver, first})
	key := sched.ClassKey{Job: 1, Class: w.c.classOf(wire.TaskNormal, benchOpts).id}
	for i := range leases {
		home := ids.Home(i % nodes)
		worker := ids.ClientID(home.ID(10))
		if i < nodes {
			w.step(ClientJoined{Client: worker, Role: wire.RoleWorker})
		}
		w.step(FromSched{sched.Granted{Key: key, Lease: ids.LeaseID(home.ID(uint64(1 + i))), Worker: worker}})
	}
	w.run(ran)
	w.c.stats.Finished = 0
	return w
}

// run answers what was pushed over each lease in a step of its own, until nothing is left.
func (w *benchWorld) run(ns int64) {
	for len(w.exec) > 0 {
		execs := w.exec
		w.exec = nil
		for _, e := range execs {
			msgs := make([]wire.Msg, 0, len(e.Tasks))
			for _, t := range e.Tasks {
				msgs = append(msgs, &wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: e.Lease, Times: wire.Times{Started: 1, Ended: 1 + ns},
					Results: []wire.Result{{Kind: wire.ResultInline, Value: benchValue, Size: 8}}})
			}
			w.step(FromClient{ids.ClientID(e.Lease.Home().ID(10)), msgs})
		}
	}
}
