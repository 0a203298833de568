package owner

import (
	"runtime"
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/oplog"
	"mobula/raylet/sched"
	"mobula/wire"
)

var benchOpts = &wire.TaskOptions{Func: "bench/noop", NumReturns: 1, MaxRetries: 3}

// benchWorld is a core with a driver and a worker that has leases for the class.
type benchWorld struct {
	c      *Core
	now    int64
	cookie uint64
	exec   []*wire.Exec
	res    []*wire.Resolved
	root   ids.TaskID
	n      uint64
	leases int
	log    *oplog.Log // nil: records go nowhere
}

const (
	benchDriver ids.ClientID = 1
	benchWorker ids.ClientID = 2
)

func newBenchWorld(leases int) *benchWorld {
	w := &benchWorld{c: New(Config{Job: 1}), now: 1, root: ids.RootTask(1, 1), leases: leases}
	w.step(ClientJoined{Client: benchDriver, Role: wire.RoleDriver})
	w.step(ClientJoined{Client: benchWorker, Role: wire.RoleWorker})
	return w
}

func (w *benchWorld) step(ev Event) {
	w.now += 1000
	for i, es := 0, w.c.Step(w.now, ev); i < len(es); i++ {
		switch e := &es[i]; e.Kind {
		case ToClient:
			switch m := e.Wire.(type) {
			case *wire.Exec:
				w.exec = append(w.exec, m)
			case *wire.Resolved:
				w.res = append(w.res, m)
			}
		case Receipt:
			defer w.step(ClientRead{Client: e.Client, Bytes: e.N})
		case Log:
			w.append(*e.Records)
		case LogFree:
			w.free(e)
		case LogLapse:
			w.lapse(e)
		case ToSched:
			if m, ok := e.msg.(sched.Want); ok && w.leases > 0 && m.Backlog > 0 {
				for ; w.leases > 0; w.leases-- {
					defer w.step(FromSched{sched.Granted{Key: m.Key, Lease: ids.LeaseID(w.leases), Worker: benchWorker}})
				}
			}
		}
	}
}

func (w *benchWorld) append(records []LogRecord) {
	for _, r := range records {
		w.cookie++
		at := w.cookie
		if w.log != nil {
			at, _ = w.log.Append(r.Bytes)
		}
		if old := r.Appended(at); old != 0 && w.log != nil {
			_ = w.log.Free(old)
		}
	}
}

func (w *benchWorld) free(e *Effect) {
	for _, p := range *e.Cookies {
		if w.log != nil && *p != 0 {
			_ = w.log.Free(*p)
		}
	}
}

func (w *benchWorld) lapse(e *Effect) {
	for _, p := range *e.Cookies {
		if w.log != nil && *p != 0 {
			_ = w.log.Lapse(*p)
		}
	}
}

func (w *benchWorld) specs(n int) []wire.Msg {
	out := make([]wire.Msg, n)
	for i := range out {
		w.n++
		s := &wire.TaskSpec{ID: ids.Derive(w.root, w.n), Parent: w.root, Opts: benchOpts}
		out[i] = &wire.Submit{Spec: s}
	}
	return out
}

var benchValue = wire.Value{Meta: []byte{1}, Data: []byte("12345678")}

// runWorker answers everything that was pushed.
func (w *benchWorld) runWorker() {
	for len(w.exec) > 0 {
		execs := w.exec
		w.exec = nil
		var msgs []wire.Msg
		for _, e := range execs {
			for _, t := range e.Tasks {
				d := &struct {
					wire.Done
					r [1]wire.Result
				}{}
				d.Task, d.Attempt, d.Lease = t.Spec.ID, t.Attempt, e.Lease
				d.Times = wire.Times{Received: w.now, Started: w.now, Ended: w.now + 800}
				d.r[0] = wire.Result{Kind: wire.ResultInline, Value: benchValue, Size: 8}
				d.Results = d.r[:]
				msgs = append(msgs, &d.Done)
			}
		}
		w.step(FromClient{benchWorker, msgs})
	}
}

// BenchmarkTask is the whole life of a simple task in the core, in batches of 256: submit,
// get, dispatch, done, resolve, release. The driver's messages are made outside the timer,
// 64 batches at once; those of the worker inside.
func BenchmarkTask(b *testing.B) {
	const batch, round = 256, 64
	w := newBenchWorld(2)
	b.ReportAllocs()
	for left := 0; b.Loop(); left-- {
		if left > 0 {
			continue // of a round that is over
		}
		left = batch * round
		b.StopTimer()
		var subs, gets [round][]wire.Msg
		var rel [round][]ids.ObjectID
		for r := range round {
			subs[r] = w.specs(batch)
			for _, m := range subs[r] {
				id := m.(*wire.Submit).Spec.ID.Return(0)
				gets[r] = append(gets[r], &wire.Get{ID: id, Fetch: true})
				rel[r] = append(rel[r], id)
			}
		}
		b.StartTimer()
		for r := range round {
			w.step(FromClient{benchDriver, subs[r]})
			w.step(FromClient{benchDriver, gets[r]})
			w.runWorker()
			if len(w.res) != batch {
				b.Fatalf("%d of %d gets were answered", len(w.res), batch)
			}
			w.res = w.res[:0]
			w.step(FromClient{benchDriver, []wire.Msg{&wire.Release{IDs: rel[r]}}})
		}
	}
	if n := w.c.tasks.n; n != 0 {
		b.Fatalf("%d tasks are left", n)
	}
}

// BenchmarkTaskSync is one task at a time: no batching helps.
func BenchmarkTaskSync(b *testing.B) {
	w := newBenchWorld(1)
	b.ReportAllocs()
	for b.Loop() {
		m := w.specs(1)
		id := m[0].(*wire.Submit).Spec.ID.Return(0)
		w.step(FromClient{benchDriver, []wire.Msg{m[0], &wire.Get{ID: id, Fetch: true}}})
		w.runWorker()
		w.res = w.res[:0]
		w.step(FromClient{benchDriver, []wire.Msg{&wire.Release{IDs: []ids.ObjectID{id}}}})
	}
}

// BenchmarkQueued reports the memory of a queued task besides its spec.
func BenchmarkQueued(b *testing.B) {
	const n = 200_000
	for b.Loop() {
		w := newBenchWorld(0)
		msgs := w.specs(n)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := 0; i < n; i += 512 {
			w.step(FromClient{benchDriver, msgs[i:min(i+512, n)]})
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/queued-task")
		runtime.KeepAlive(w)
		runtime.KeepAlive(msgs)
	}
}

// BenchmarkCall is the whole life of an actor's call, in batches of 256.
func BenchmarkCall(b *testing.B) {
	const batch = 256
	w := newBenchWorld(1)
	create := &wire.TaskSpec{ID: ids.Derive(w.root, 1<<40), Parent: w.root, Kind: wire.TaskActorCreate, Opts: &wire.TaskOptions{Func: "bench/actor", NumReturns: 1}}
	create.Actor = ids.ActorID(create.ID)
	w.step(FromClient{benchDriver, []wire.Msg{&wire.Submit{Spec: create}}})
	w.runWorker()
	opts, seq := &wire.TaskOptions{Func: "bench/method", NumReturns: 1}, uint64(0)
	b.ReportAllocs()
	for left := 0; b.Loop(); left-- {
		if left > 0 {
			continue // of a batch that is over
		}
		left = batch
		msgs, rel := make([]wire.Msg, 0, 2*batch), make([]ids.ObjectID, 0, batch)
		for range batch {
			seq++
			s := &wire.TaskSpec{ID: ids.Derive(w.root, seq), Parent: w.root, Kind: wire.TaskActorCall, Opts: opts, Actor: create.Actor, Seq: seq}
			rel = append(rel, s.ID.Return(0))
			msgs = append(msgs, &wire.Submit{Spec: s}, &wire.Get{ID: s.ID.Return(0), Fetch: true})
		}
		w.step(FromClient{benchDriver, msgs})
		w.runWorker()
		if len(w.res) != batch {
			b.Fatalf("%d of %d gets were answered", len(w.res), batch)
		}
		w.res = w.res[:0]
		w.step(FromClient{benchDriver, []wire.Msg{&wire.Release{IDs: rel}}})
	}
}
