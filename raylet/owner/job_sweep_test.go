package owner

import (
	"slices"
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// sweepWorld is a driver with many tasks, of which some have ended.
func sweepWorld(t *testing.T, ended, queued int) *benchWorld {
	t.Helper()
	w := newBenchWorld(1)
	w.c.cfg.CreditWindow = -1
	if ended > 0 {
		w.step(FromClient{benchDriver, w.specs(ended)})
		w.runWorker()
		if n := w.c.byState[task.Finished]; n != ended {
			t.Fatalf("%d of %d tasks have finished", n, ended)
		}
	}
	if queued > 0 {
		w.step(FromClient{benchDriver, w.specs(queued)})
		w.exec = nil // the worker is slow
	}
	return w
}

// effects steps an event and gives what it asks for.
func (w *benchWorld) effects(ev Event) (out []Effect) {
	w.now += 1000
	for _, e := range w.c.Step(w.now, ev) {
		if e.Kind == Log {
			w.append(*e.Records)
		}
		out = append(out, e)
	}
	return out
}

func countKind(es []Effect, k EffectKind) (n int) {
	for i := range es {
		if es[i].Kind == k {
			n++
		}
	}
	return n
}

// What a job holds goes with it: no handle is taken one by one, and nothing is written to a
// log that is removed.
func TestAJobEndsAtOnceHoweverMuchItHolds(t *testing.T) {
	const n = 20_000
	w := sweepWorld(t, n, 0)
	for i := range uint32(3000) {
		w.step(FromClient{benchDriver, []wire.Msg{&wire.PutValue{ID: w.root.Put(i), Value: benchValue}}})
	}
	es := w.effects(ClientGone{Client: benchDriver})
	if len(es) == 0 || es[len(es)-1].Kind != JobEnded || countKind(es, Log)+countKind(es, LogFree) != 0 || len(es) > 10 {
		t.Errorf("%d effects, %d of the log", len(es), countKind(es, Log)+countKind(es, LogFree))
	}
	for _, e := range es {
		if f, ok := e.msg.(objectstore.Free); ok {
			t.Errorf("%d objects are freed one by one", len(f.IDs))
		}
	}
	if err := w.c.Validate(); err != nil {
		t.Error(err)
	}
}

// What waits is cancelled in slices; between two of them the owner answers, nothing starts,
// and the job ends with the last.
func TestAJobEndsInSlices(t *testing.T) {
	const n = 5*sweepPart + 100
	w := sweepWorld(t, 10, n)
	steps, logs, cancelled := 0, 0, uint64(0)
	var ev Event = ClientGone{Client: benchDriver}
	for ; ; ev = (Timer{}) {
		es := w.effects(ev)
		steps++
		logs += countKind(es, Log) + countKind(es, LogFree)
		if k := w.c.stats.Cancelled - cancelled; k > sweepPart+uint64(w.c.cfg.MaxPipeline) {
			t.Fatalf("step %d cancels %d tasks", steps, k)
		}
		cancelled = w.c.stats.Cancelled
		if err := w.c.Validate(); err != nil {
			t.Fatal(err)
		}
		if countKind(es, JobEnded) > 0 {
			break
		}
		if countKind(es, After) == 0 || steps > n {
			t.Fatalf("step %d does not ask for the next", steps)
		}
		es = w.effects(FromClient{benchWorker, []wire.Msg{&wire.Get{ID: w.root.Put(77)}}})
		if countKind(es, ToClient) != 1 || countKind(es, JobEnded) != 0 {
			t.Fatalf("a get between two slices has %d answers", countKind(es, ToClient))
		}
	}
	if cancelled != n || logs != 0 || steps < 5 || steps > 8 || w.c.stats.Pushed > 10+uint64(w.c.cfg.MaxPipeline) {
		t.Errorf("%d of %d tasks are cancelled in %d steps, %d records of the log, %d tasks were pushed", cancelled, n, steps, logs, w.c.stats.Pushed)
	}
}

// A worker that is gone gives its handles up in slices while the job goes on.
func TestHandlesFallInSlices(t *testing.T) {
	const n = 4 * sweepPart
	w := sweepWorld(t, n, 0)
	var borrows []wire.Msg
	rel := &wire.Release{}
	w.c.tasks.each(func(o *objRec) {
		borrows = append(borrows, &wire.AddRef{ID: o.id})
		rel.IDs = append(rel.IDs, o.id)
	})
	const other ids.ClientID = 9
	w.step(ClientJoined{Client: other, Role: wire.RoleWorker})
	w.step(FromClient{other, borrows})
	w.step(FromClient{benchDriver, []wire.Msg{rel}})
	if w.c.tasks.n != n {
		t.Fatalf("%d tasks are left, %d were borrowed", w.c.tasks.n, n)
	}
	steps := 0
	var ev Event = ClientGone{Client: other}
	for ; w.c.tasks.n > 0; ev = (Timer{}) {
		before := w.c.tasks.n
		es := w.effects(ev)
		steps++
		if k := before - w.c.tasks.n; k == 0 || k > sweepPart {
			t.Fatalf("step %d frees %d tasks", steps, k)
		}
		if err := w.c.Validate(); err != nil {
			t.Fatal(err)
		}
		if w.c.tasks.n > 0 && countKind(es, After) == 0 {
			t.Fatalf("step %d does not ask for the next", steps)
		}
		w.step(FromClient{benchDriver, w.specs(1)})
		w.runWorker()
		var last ids.ObjectID
		last.Task = ids.Derive(w.root, w.n)
		w.effects(FromClient{benchDriver, []wire.Msg{&wire.Release{IDs: []ids.ObjectID{last}}}})
	}
	w.step(Timer{})
	if steps < 4 || w.c.clients.byID[other] != nil {
		t.Errorf("%d steps, the client is still known: %v", steps, w.c.clients.byID[other] != nil)
	}
}

// A detached actor outlives its driver: the rest is cancelled and freed in slices, and what the
// actor's worker submits runs when that is done.
func TestADetachedActorSeesTheSweepThrough(t *testing.T) {
	s := newScript(t, Config{sweepPart: 2})
	det := s.create(&wire.TaskOptions{Func: "detached", NumReturns: 1, ActorName: "d", Detached: true})
	s.step(FromDirectory{NameClaimed{Actor: ids.ActorID(det.ID)}})
	l := s.grant(worker2)
	s.done(worker2, l, s.executed(worker2), inline(""))
	var left []*wire.TaskSpec
	for range 9 {
		left = append(left, s.submit(simple))
	}
	s.step(ClientGone{Client: driver})
	steps := 1
	for ; s.c.cancelling(); steps++ {
		s.pass(0)
	}
	for s.c.sweeps.Len() > 0 {
		s.pass(0)
		steps++
	}
	for _, spec := range left {
		if s.c.tasks.task(spec.ID) != nil {
			t.Errorf("task %v is left", spec.ID)
		}
	}
	if s.ended() || steps < 5 {
		t.Errorf("the job has ended: %v, after %d steps", s.ended(), steps)
	}
	kid := &wire.TaskSpec{ID: ids.Derive(det.ID, 1), Parent: det.ID, Opts: simple}
	s.from(worker2, &wire.Submit{Spec: kid})
	if st := s.state(kid); st != task.PendingNode {
		t.Fatalf("what the actor submits is %v", st)
	}
	l = s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("x"))
	if st := s.state(kid); st != task.Finished {
		t.Errorf("what the actor submits is %v", st)
	}
}

// A handle that moves to a record which the sweep has passed is found by going round again.
func TestASweepFindsWhatMovedBehindIt(t *testing.T) {
	s := newScript(t, Config{sweepPart: 1})
	for range 6 {
		s.submit(simple)
	}
	late := s.spec(simple)
	cl := s.c.client(worker2)
	s.c.giveHandle(cl, s.c.placeholder(late.ID.Return(0))) // as its Holdings after a restart do
	s.c.tasks.each(func(o *objRec) { s.c.giveHandle(cl, o) })
	s.step(ClientGone{Client: worker2})
	for i := 0; i < 6 && s.c.sweeps.Len() > 0 && !s.c.sweeps.Front().tasks.done; i++ {
		s.pass(0)
	}
	s.from(driver, &wire.Submit{Spec: late})
	for i := 0; s.c.sweeps.Len() > 0; i++ {
		if i > 50 {
			t.Fatal("the sweep has no end")
		}
		s.pass(0)
	}
	if o := s.c.object(late.ID.Return(0)); o == nil || o.holder == cl || o.more != nil && slices.Contains(*o.more, cl) || cl.handles != 0 {
		t.Errorf("the client that is gone still has %d handles", cl.handles)
	}
}
