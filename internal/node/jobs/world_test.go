package jobs

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/wire"
)

// world is what lies around a core: owners, clients, the pool's word, and the shell's tables, which outlive it. Anything may come at any moment, and the
// core may be lost at any step.
type world struct {
	t       *rapid.T
	core    *Core
	jobs    map[ids.JobID]*shown
	members map[ids.ClientID]Client // let in, and not gone
	asks    map[Ask]Event           // unanswered
	joining map[Ask]Client          // of Join and Admit
	coming  []Return                // allowed, and not yet in
	unread  []Client                // gone, and still mapped
	leaving map[ids.ClientID]bool   // dismissed
	found   map[ids.JobID]bool      // by the store, of jobs without an owner
	settled bool
	last    struct {
		job    ids.JobID
		client ids.ClientID
		ask    Ask
		nth    int
	}
}

// shown is what the others see of a job.
type shown struct {
	Job
	over    bool
	driver  ids.ClientID
	known   map[ids.ClientID]bool // to its owner; nil: that is not in the table
	raylet  int                   // how often the raylet was told
	store   int                   // how often its owner has had an inventory
	expects bool                  // the store has something of it that its owner has to hear of
}

func (w *world) ask(with func(Ask) Event) {
	w.last.ask++
	ev := with(w.last.ask)
	w.asks[w.last.ask] = ev
	w.step(ev)
}

func (w *world) step(ev Event) {
	if rapid.IntRange(0, 19).Draw(w.t, "crash") == 19 { // the core is lost with the event in hand, which comes once more
		w.crash()
	}
	w.take(w.core.Step(0, ev))
}

func (w *world) crash() {
	r := Rebuild{Settled: w.settled}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		if j := w.jobs[id]; j.known != nil && !j.over {
			r.Jobs = append(r.Jobs, j.Job)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.members)) {
		r.Clients = append(r.Clients, w.members[id])
	}
	for _, id := range slices.Sorted(maps.Keys(w.found)) {
		r.Found = append(r.Found, Found{objectstore.Inventory{Job: id}})
	}
	w.core = New("n")
	w.take(w.core.Step(0, r))
	for _, a := range slices.Sorted(maps.Keys(w.asks)) {
		if ev := w.asks[a]; ev != nil && Waits(ev) { // else it was answered meanwhile
			w.take(w.core.Step(0, ev))
		}
	}
	w.take(w.core.Step(0, Rebuilt{}))
}

func (w *world) fail(format string, args ...any) { w.t.Fatalf(format, args...) }

// take carries effects out, and holds each to what it says.
func (w *world) take(effects []Effect) {
	var dismissed []ids.ClientID
	for _, e := range effects {
		switch e := e.(type) {
		case Own:
			if w.jobs[e.Job].known != nil {
				w.fail("the owner of job %v is put into the table twice", e.Job)
			}
			w.jobs[e.Job].known = make(map[ids.ClientID]bool)
			w.told(e.Job, e.First)
			delete(w.found, e.Job)
		case Answer:
			w.answered(e)
		case LetIn:
			cl, waits := w.joining[e.Ask]
			if _, there := w.members[e.Client]; !waits || there {
				w.fail("client %v is let in for %v, and is there: %v", e.Client, e.Ask, there)
			}
			cl.Job = e.Job
			w.members[e.Client] = cl
		case Introduce:
			j, cl := w.jobs[e.Job], w.members[e.Client]
			if j.over || j.known[e.Client] || cl.ID == 0 {
				w.fail("client %+v is introduced to job %+v", cl, j)
			}
			j.known[e.Client] = true
			cl.Knows = append(slices.Clone(cl.Knows), e.Job)
			w.members[e.Client] = cl
		case TellGone:
			for _, id := range e.Jobs {
				if !w.jobs[id].known[e.Client] {
					w.fail("job %v is told that %v is gone, which it never knew", id, e.Client)
				}
				delete(w.jobs[id].known, e.Client)
			}
			w.unread = append(w.unread, w.members[e.Client])
			delete(w.members, e.Client)
			delete(w.leaving, e.Client)
		case Dismiss:
			dismissed = append(dismissed, e.Client)
		case Resume:
			j := w.jobs[e.Job]
			if !j.Waits || j.over {
				w.fail("job %+v is to go on", j)
			}
			if e.Orphan != (w.members[j.driver].ID == 0) {
				w.fail("job %+v goes on without its driver: %v", j, e.Orphan)
			}
			j.Waits, j.Orphan = false, e.Orphan
		case StartJob:
			j := w.jobs[e.Job]
			if j.raylet++; j.raylet > 1 || j.over {
				w.fail("the raylet is told %d times of job %v, which is over: %v", j.raylet, e.Job, j.over)
			}
			j.Started = true
			delete(w.asks, e.Ask)
		case Remove:
			w.jobs[e.Job].over = true
		case Settled:
			w.settled = true
			clear(w.found)
		case ToOwner:
			w.told(e.Job, e.Ev)
		case ToStore:
			if e, ok := e.Ev.(objectstore.ClientGone); ok {
				for _, cl := range w.members {
					if cl.ID == e.Client {
						w.fail("the store takes the pins of %v, which is there", cl)
					}
				}
			}
		case ForgetDriver:
			if w.jobs[e.Job].over {
				w.fail("there is nothing to note any more of job %v", e.Job)
			}
		case Expel, TellOver, WorkerGone, EndProcesses, CleanUp, ToRaylet, ToDirectory:
		default:
			w.fail("the effect %T is nobody's", e)
		}
	}
	for _, id := range dismissed {
		w.leaving[id] = true
	}
}

func (w *world) told(id ids.JobID, ev owner.Event) {
	j := w.jobs[id]
	switch ev := ev.(type) {
	case nil:
	case owner.FromStore:
		j.store++
	case owner.FromOwner:
		if !w.jobs[ev.Job].over {
			w.fail("job %v is said to be gone", ev.Job)
		}
	default:
		w.fail("owner %v is told %T", id, ev)
	}
}

func (w *world) answered(a Answer) {
	ev, waits := w.asks[a.Ask]
	delete(w.asks, a.Ask)
	if !waits {
		return // a core before has answered it too
	}
	switch ev := ev.(type) {
	case Return:
		if a.Err == nil {
			if _, there := w.members[ev.Client]; there {
				w.fail("driver %v is let back beside its session before", ev.Client)
			}
			w.coming = append(w.coming, ev)
		}
	case Join:
		if cl, there := w.members[ev.ID]; a.Err == nil && (!there || !slices.Contains(cl.Knows, ev.Job)) {
			w.fail("client %v may speak to its owner, which does not know it", ev.ID)
		}
	}
}

func (w *world) client() ids.ClientID {
	w.last.client++
	return w.last.client
}

func pick[K ~uint64, V any](w *world, of map[K]V) (K, bool) {
	if len(of) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(of))).Draw(w.t, "which"), true
}

// restore is the start of a node that an earlier life has left jobs to.
func (w *world) restore() {
	for range rapid.IntRange(0, 3).Draw(w.t, "restored") {
		w.last.job++
		id, cl := w.last.job, w.client()
		w.jobs[id] = &shown{Job: Job{ID: id, Waits: true}, driver: cl, expects: rapid.Bool().Draw(w.t, "stored")}
		if w.jobs[id].expects {
			w.found[id] = true
			w.step(Found{objectstore.Inventory{Job: id}})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		w.ask(func(a Ask) Event { return Restored{Ask: a, Job: id} })
	}
	w.ask(func(a Ask) Event { return AllRestored{Ask: a} })
}

// act has something happen.
func (w *world) act(what int) {
	job, anyJob := pick(w, w.jobs)
	client, anyClient := pick(w, w.members)
	switch {
	case what == 0 || !anyJob: // a driver comes
		w.last.job++
		id, cl := w.last.job, w.client()
		w.jobs[id] = &shown{Job: Job{ID: id}, driver: cl}
		w.ask(func(a Ask) Event { return Began{Ask: a, Job: id} })
		w.join(Client{ID: cl, Role: wire.RoleDriver, Job: id, Apart: true})
	case what == 1 && !w.jobs[job].over:
		w.step(Over{Job: job})
	case what == 2:
		w.last.nth++
		w.ask(func(a Ask) Event {
			return Return{Ask: a, Job: job, Client: w.jobs[job].driver, Nth: w.last.nth, Proved: rapid.IntRange(0, 3).Draw(w.t, "proved") > 0}
		})
	case what == 3 && len(w.coming) > 0:
		r := w.coming[0]
		w.coming = w.coming[1:]
		if rapid.IntRange(0, 3).Draw(w.t, "fails") == 0 {
			w.step(Withdrawn{Job: r.Job, Nth: r.Nth})
		} else {
			w.join(Client{ID: r.Client, Role: wire.RoleDriver, Job: r.Job, Nth: r.Nth, Apart: true})
		}
	case what == 4 && w.jobs[job].Waits:
		w.jobs[job].Alone = true
		w.step(Alone{job})
	case what == 5:
		w.ask(func(a Ask) Event { return Start{a, pool.JobStarted{Job: job}} })
	case what == 6: // a worker comes
		cl := w.client()
		w.last.ask++
		ev := Arrived{Ask: w.last.ask, Client: cl}
		w.asks[ev.Ask], w.joining[ev.Ask] = ev, Client{ID: cl, Role: wire.RoleWorker, Apart: true}
		w.step(ev)
		switch rapid.IntRange(0, 3).Draw(w.t, "word") {
		case 0:
			w.step(Refuse{Client: cl})
		case 1:
			w.step(GaveUp{Client: cl})
			fallthrough
		default:
			w.ask(func(a Ask) Event { return Admit{Ask: a, Client: cl, Job: job} })
		}
		if w.asks[ev.Ask] != nil {
			w.fail("worker %v waits for an answer", cl)
		}
	case what == 7 && anyClient:
		w.ask(func(a Ask) Event { return Guest{Ask: a, Client: client, Job: job} })
	case what == 8 && anyClient:
		w.gone(client)
	case what == 9 && len(w.unread) > 0:
		cl := w.unread[0]
		w.unread = w.unread[1:]
		w.step(Unread{Client: cl.ID, Nth: cl.Nth})
	case what == 10:
		w.step(Cut{Job: job})
		w.step(Missed{Client: w.jobs[job].driver, Job: job})
	default:
		for _, id := range slices.Sorted(maps.Keys(w.leaving)) {
			w.gone(id)
		}
	}
}

func (w *world) join(cl Client) {
	w.last.ask++
	ev := Join{w.last.ask, cl}
	w.asks[ev.Ask], w.joining[ev.Ask] = ev, cl
	w.step(ev)
}

func (w *world) gone(id ids.ClientID) { w.step(Gone{Client: id, Nth: w.members[id].Nth}) }

// settle lets everything end that is under way.
func (w *world) settle() {
	for len(w.leaving) > 0 || len(w.coming) > 0 {
		for _, id := range slices.Sorted(maps.Keys(w.leaving)) {
			w.gone(id)
		}
		if len(w.coming) > 0 {
			r := w.coming[0]
			w.coming = w.coming[1:]
			w.step(Withdrawn{Job: r.Job, Nth: r.Nth})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		if w.jobs[id].Waits && !w.jobs[id].over {
			w.jobs[id].Alone = true
			w.step(Alone{id})
		}
	}
}

func (w *world) check() {
	for a, ev := range w.asks {
		w.fail("ask %v waits: %+v", a, ev)
	}
	for id, j := range w.jobs {
		if !j.over && j.Waits {
			w.fail("job %v waits for a driver that does not come", id)
		}
		if !j.over && j.expects && j.store == 0 {
			w.fail("the owner of job %v was never told what the store has", id)
		}
		for cl := range j.known {
			if !j.over && w.members[cl].ID == 0 {
				w.fail("the owner of job %v waits for client %v, which is gone", id, cl)
			}
		}
	}
}

// Whatever comes, in whatever order, and wherever the core is lost: everybody is answered, an owner hears of a client's end if it has heard of the client, the
// raylet hears of a job once, no job waits for ever, and the later session of a client keeps what it has.
func TestJobsAndClientsAgreeInTheEnd(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := &world{
			t: t, core: New("n"), jobs: make(map[ids.JobID]*shown), members: make(map[ids.ClientID]Client), asks: make(map[Ask]Event), joining: make(map[Ask]Client),
			leaving: make(map[ids.ClientID]bool), found: make(map[ids.JobID]bool),
		}
		w.restore()
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			w.act(rapid.IntRange(0, 11).Draw(t, "what"))
		}
		w.settle()
		w.check()
	})
}
