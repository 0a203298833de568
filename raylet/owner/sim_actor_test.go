package owner

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// simActors drives actors: creations, ordered calls of several callers, kills, deaths of
// their processes, and releases of their handles.
type simActors struct {
	*simDriver
	handles []ids.ObjectID
	seq     map[[2]ids.TaskID]uint64
	calls   []ids.ObjectID
	strict  bool // every call must succeed
	wild    []*openStream
}

func (d *simActors) create() {
	d.simDriver.calls++
	s := &wire.TaskSpec{ID: ids.Derive(d.root, d.simDriver.calls), Parent: d.root, Kind: wire.TaskActorCreate, Opts: d.opts["new"]}
	if len(d.handles) > 0 && d.w.rng.IntN(2) == 0 { // made by an actor
		s.Opts, s.Parent = d.opts["child"], d.handles[d.w.rng.IntN(len(d.handles))].Task
	}
	s.Actor = ids.ActorID(s.ID)
	d.submit(s)
	d.handles = append(d.handles, s.ID.Return(0))
	d.watched[s.Actor] = new(wire.ActorNews)
	d.send(&wire.WatchActor{Actor: s.Actor})
}

// call is one call by one of three callers to one of the actors, sometimes with an argument
// that is not there yet.
func (d *simActors) call() {
	h := d.handles[d.w.rng.IntN(len(d.handles))]
	parent := ids.Derive(d.root, 1<<40+d.w.rng.Uint64N(3))
	key := [2]ids.TaskID{parent, h.Task}
	d.seq[key]++
	s := &wire.TaskSpec{ID: ids.Derive(parent, d.seq[key]<<20|uint64(h.Index)|uint64(h.Task[15])<<8), Parent: parent, Kind: wire.TaskActorCall, Opts: d.opts["inc"],
		Actor: ids.ActorID(h.Task), Seq: d.seq[key]}
	if d.w.rng.IntN(4) == 0 {
		arg := d.task([]string{"sum", "big"}[d.w.rng.IntN(2)])
		s.Args = []wire.Arg{{Ref: arg.ID.Return(0)}}
	}
	d.submit(s)
	d.calls = append(d.calls, s.ID.Return(0))
}

type actorPlan struct {
	deaths, kills, panics, crash float64
	restarts, retries            int32
}

// onlyPanics tells whether calls fail by their own panics alone, and run once.
func (p actorPlan) onlyPanics() bool {
	return p.panics > 0 && p.deaths+p.kills+p.crash == 0 && p.restarts < 0 && p.retries == 0
}

func (p actorPlan) run(t *testing.T, seed uint64) {
	w := newSimWorld(t, seed, Config{})
	w.crash, w.panics = p.crash, p.panics
	d := &simActors{simDriver: newSimDriver(w), seq: make(map[[2]ids.TaskID]uint64), strict: p.retries != 0 && p.restarts != 0 && p.kills == 0}
	d.lossy = p.deaths > 0
	d.opts["new"] = &wire.TaskOptions{Func: "new", NumReturns: 1, MaxRestarts: p.restarts, MaxTaskRetries: p.retries, MaxPendingCalls: -1}
	child := *d.opts["new"]
	child.Escalate = true
	d.opts["child"] = &child
	if p.panics > 0 && p.kills > 0 {
		child.OnPanic = wire.OnPanic(seed % 4)
	}
	for range 2 {
		d.create()
	}
	for range 50 {
		switch w.rng.IntN(12) {
		case 0:
			d.create()
		case 1:
			if len(d.handles) > 2 && w.rng.IntN(4) == 0 {
				d.release(d.handles[0])
				d.handles = d.handles[1:]
			}
		default:
			d.call()
		}
		for range w.rng.IntN(10) {
			w.turn()
		}
		simPlan{deaths: p.deaths}.harm(w, d.simDriver)
		if w.rng.Float64() < p.kills {
			h := d.handles[w.rng.IntN(len(d.handles))]
			k := w.rng.IntN(3)
			d.send(&wire.KillActor{Actor: ids.ActorID(h.Task), Restart: k == 0, Stop: k == 1})
		}
	}
	for _, id := range d.calls {
		d.get(id)
	}
	w.settle()
	for _, id := range d.calls {
		got, ok := d.got[id]
		switch {
		case !ok:
			t.Fatalf("call %v was never answered: %s", id, w.explain(id))
		case got.err == 0:
		case got.err == errs.CodeTaskFailed && p.panics > 0 && !d.strict:
		case p.onlyPanics():
			t.Fatalf("call %v had not begun when its actor panicked, and ended with code %d", id, got.err)
		case d.strict || got.err != errs.CodeActorDied && got.err != errs.CodeActorUnavailable:
			t.Fatalf("call %v ended with code %d", id, got.err)
		}
	}
	for id, n := range w.runs {
		if n > 1 && p.onlyPanics() && slices.Contains(d.calls, id.Return(0)) {
			t.Fatalf("call %v ran %d times", id, n)
		}
	}
	d.finish()
	for id, news := range d.watched {
		if news.State != wire.ActorDead {
			t.Fatalf("actor %v has ended, and whoever watches it was told %+v", id, news)
		}
	}
	for _, cl := range w.clients {
		if len(cl.actors) > 0 {
			t.Fatalf("worker %d still has %d actors", cl.id, len(cl.actors))
		}
	}
}

func TestSimulationOfActors(t *testing.T) {
	for name, p := range map[string]actorPlan{
		"calm":     {},
		"restarts": {deaths: .1, restarts: -1, retries: -1},
		"deaths":   {deaths: .1, restarts: 2},
		"kills":    {kills: .1, restarts: 1, retries: 1},
		"rebuilds": {crash: .01, restarts: -1, retries: -1},
		"panics":   {panics: .1, restarts: -1},
		"repeats":  {panics: .1, crash: .01, restarts: -1, retries: -1},
		"all":      {deaths: .05, kills: .05, panics: .05, crash: .005, restarts: 3, retries: 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, seed := range testkit.Seeds(t, simSeeds) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { p.run(t, seed) })
			}
		})
	}
}

// TestSimulationOfStreams reads streams, some to their end, some not.
func TestSimulationOfStreams(t *testing.T) {
	for name, p := range map[string]simPlan{
		"calm":     {},
		"deaths":   {deaths: .08},
		"losses":   {losses: .1},
		"gets":     {losses: .2, deaths: .02, gets: true},
		"rebuilds": {crash: .01},
		"all":      {deaths: .04, losses: .05, crash: .005},
	} {
		t.Run(name, func(t *testing.T) {
			for _, seed := range append(testkit.Seeds(t, simSeeds), 17_960_018_511_000_000) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { p.runStreams(t, seed) })
			}
		})
	}
}

type openStream struct {
	spec  *wire.TaskSpec
	args  []uint64
	next  uint32
	ended bool
	reads bool // it gets an item before it asks for the next one
}

// open submits a task that streams.
func (d *simDriver) open() *openStream {
	d.calls++
	s := &openStream{args: []uint64{mix(d.w.rng.Uint64())}}
	s.spec = &wire.TaskSpec{ID: ids.Derive(d.root, d.calls), Parent: d.root, Opts: d.opts["stream"],
		Args: []wire.Arg{{Value: wire.Value{Data: bytesOf(s.args[0], 0)}}}}
	d.submit(s.spec)
	return s
}

func (p simPlan) runStreams(t *testing.T, seed uint64) {
	w := newSimWorld(t, seed, Config{})
	w.crash = p.crash
	d := newSimDriver(w)
	d.lossy = p.deaths+p.losses > 0
	var open []*openStream
	for i := range 60 {
		if i < 12 {
			s := d.open()
			s.reads = p.gets
			open = append(open, s)
		}
		for _, s := range open {
			d.advance(s)
		}
		for range w.rng.IntN(10) {
			w.turn()
		}
		p.harm(w, d)
		if w.rng.IntN(8) == 0 {
			s := open[w.rng.IntN(len(open))]
			if !s.ended {
				d.leave(s)
				for i := range s.next {
					w.mayFail[s.spec.ID.Return(int(i))] = true // lost after this, it is not made again
				}
				if w.rng.IntN(2) == 0 {
					d.send(&wire.Cancel{Task: s.spec.ID})
				}
				d.send(&wire.Release{IDs: []ids.ObjectID{s.spec.ID.Stream()}})
			}
		}
	}
	for again, before, still := true, -1, 0; again; {
		again = false
		now := 0
		for _, s := range open {
			again = d.advance(s) || again
			now += int(s.next)
			if s.ended {
				now++
			}
		}
		if w.settle(); now != before {
			still = 0
		} else if still++; still > 2 { // one round asks, the next one takes
			t.Fatal("no stream goes on")
		}
		before = now
	}
	d.finish()
}

// nextOf asks for an item of a stream. The readers of one in two say when they have its end; others, of an older version, do not.
func nextOf(task ids.TaskID, index uint32) wire.StreamNext {
	return wire.StreamNext{Task: task, Index: index, Leaves: task[len(task)-1]%2 == 0}
}

// leave reads a stream no more.
func (d *simDriver) leave(s *openStream) {
	s.ended = true
	delete(d.reads, s.spec.ID)
	maps.DeleteFunc(d.streams, func(k wire.StreamNext, _ bool) bool { return k.Task == s.spec.ID })
}

// advance takes the next item if it is there, checks it, and asks for the one after; it is
// false when the stream has ended.
func (d *simDriver) advance(s *openStream) bool {
	if s.ended {
		return false
	}
	if s.reads && s.next > 0 {
		id := s.spec.ID.Return(int(s.next - 1))
		if d.get(id); d.got[id] == (outcome{}) {
			return true
		}
	}
	k := nextOf(s.spec.ID, s.next)
	m := d.items[k]
	if m == nil {
		if !d.streams[k] {
			d.streams[k] = true
			d.send(&k)
		}
		return true
	}
	n := uint32(s.args[0] % 6)
	switch m.Result.Kind {
	case wire.ResultNone:
		if s.next != n {
			d.w.t.Fatalf("stream %v ends after %d of %d items", s.spec.ID, s.next, n)
		}
		d.leave(s)
		if k.Leaves {
			d.send(&wire.Release{IDs: []ids.ObjectID{s.spec.ID.Stream()}})
		}
		return false
	case wire.ResultError:
		d.w.t.Fatalf("stream %v: item %d: %v", s.spec.ID, s.next, m.Result.Err)
	}
	id := s.spec.ID.Return(int(s.next))
	d.w.want[id] = outcome{val: taskVal(s.args, int(s.next))}
	d.known = append(d.known, id)
	s.next++
	return true
}
