package node

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// names answers the owners' questions about named actors: names are claimed in the
// control plane's table, where an actor is now is known here, on its node.
type names struct {
	n *Node

	mu    sync.Mutex
	at    map[ids.ActorID]owner.ActorAt          // guarded by mu: last published
	seek  map[ids.ActorID]map[ids.JobID]struct{} // guarded by mu: whose owners want to hear
	names map[ids.ActorID]*wire.TaskOptions      // guarded by mu: names held by this node's actors
	frees map[fullName][]func()                  // guarded by mu: names being given up, and the claims that wait for that
}

func newNames(n *Node) *names {
	return &names{
		n: n, at: make(map[ids.ActorID]owner.ActorAt), seek: make(map[ids.ActorID]map[ids.JobID]struct{}),
		names: make(map[ids.ActorID]*wire.TaskOptions), frees: make(map[fullName][]func()),
	}
}

// handle takes an owner's message. Answers are posted, never awaited.
func (t *names) handle(job ids.JobID, msg any) {
	switch m := msg.(type) {
	case owner.ClaimName:
		t.claim(job, m)
	case owner.ReleaseName:
		t.release(m)
	case owner.PublishActor:
		t.publish(m.At)
	case owner.LocateActor:
		t.locate(job, m)
	case owner.CallsLost:
		t.n.jobs.post(m.Actor.Job(), owner.FromRegistry{Msg: m})
	case owner.KillActor:
		t.n.jobs.post(m.Actor.Job(), owner.FromRegistry{Msg: owner.KillRequested(m)})
	}
}

type fullName struct{ namespace, name string }

// claim asks for a name. One that is being given up is asked for after that: its actor is dead, as its watchers know.
func (t *names) claim(job ids.JobID, m owner.ClaimName) {
	of := fullName{m.Opts.Namespace, m.Opts.ActorName}
	t.mu.Lock()
	later, freeing := t.frees[of]
	if freeing {
		t.frees[of] = append(later, func() { t.claimNow(job, m) })
	}
	t.mu.Unlock()
	if !freeing {
		t.claimNow(job, m)
	}
}

// freed lets those go on that wait for a name.
func (t *names) freed(of fullName) {
	t.mu.Lock()
	later := t.frees[of]
	delete(t.frees, of)
	t.mu.Unlock()
	for _, claim := range later {
		claim()
	}
}

func (t *names) claimNow(job ids.JobID, m owner.ClaimName) {
	rec := t.record(job, m.Actor, m.Opts, gcs.ActorPending)
	t.n.ask(gcs.Claim{Actor: rec}, func(r gcs.Reply) {
		ans := owner.NameClaimed{Actor: m.Actor, Err: errs.From(r.Err)}
		held, ok := firstActor(r.Records)
		switch {
		case r.Err == nil:
			t.hold(m.Actor, m.Opts)
		case ok && m.Opts.GetIfExists:
			if id, err := parseActor(held.Actor); err == nil {
				ans.Existing, ans.Err = id, nil
			}
		}
		t.n.jobs.post(job, owner.FromRegistry{Msg: ans})
		if r.Err == nil && t.n.jobs.get(job) == nil { // it has ended meanwhile, and forget had not seen the name
			t.release(owner.ReleaseName{Actor: m.Actor})
		}
	})
}

func (t *names) hold(id ids.ActorID, opts *wire.TaskOptions) {
	t.mu.Lock()
	t.names[id] = opts
	t.mu.Unlock()
}

// reconcile has every name in the table that an earlier life of the node left looked at by the owner of its actor; a job that did
// not come back has none. The table is this node's alone, whatever it was called then.
func (t *names) reconcile() {
	if !t.n.gcs.kept {
		return
	}
	t.n.ask(gcs.List{Bucket: gcs.Actors}, func(r gcs.Reply) {
		if r.Err != nil {
			if !errors.Is(r.Err, errs.ErrShutdown) {
				t.n.limited.warn("the names of actors could not be read; those of dead ones stay taken", "err", r.Err)
			}
			return
		}
		for _, rec := range r.Records {
			rec, ok := rec.(gcs.ActorRecord)
			id, err := parseActor(rec.Actor)
			if !ok || err != nil {
				continue
			}
			opts := &wire.TaskOptions{Namespace: rec.Namespace, ActorName: rec.Name, Detached: rec.Detached, Func: rec.Type}
			t.hold(id, opts)
			t.n.jobs.post(id.Job(), owner.FromRegistry{Msg: owner.NameHeld{Actor: id, Opts: opts}})
			if t.n.jobs.get(id.Job()) == nil {
				t.release(owner.ReleaseName{Actor: id})
			}
		}
	})
}

// ofJob gives the names that actors of a job have, for its owner that was restarted.
func (t *names) ofJob(job ids.JobID) []owner.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	var evs []owner.Event
	for id, opts := range t.names {
		if id.Job() == job {
			evs = append(evs, owner.FromRegistry{Msg: owner.NameHeld{Actor: id, Opts: opts}})
		}
	}
	return evs
}

func (t *names) release(m owner.ReleaseName) {
	t.publish(owner.ActorAt{Actor: m.Actor, State: actor.Dead, Err: m.Err})
	t.mu.Lock()
	opts := cmp.Or(m.Opts, t.names[m.Actor])
	delete(t.names, m.Actor)
	if opts == nil {
		t.mu.Unlock()
		return // it was given up already
	}
	of := fullName{opts.Namespace, opts.ActorName}
	if _, freeing := t.frees[of]; !freeing {
		t.frees[of] = nil
	}
	t.mu.Unlock()
	t.free(gcs.Free{Namespace: opts.Namespace, Name: opts.ActorName, Actor: m.Actor.String()})
}

// freeAgain is how long after a failure the control plane is asked once more to free a name.
const freeAgain = time.Second

// free gives a name up, however often it takes; what is left when the node ends its next life finds.
func (t *names) free(op gcs.Free) {
	t.n.ask(op, func(r gcs.Reply) {
		t.freed(fullName{op.Namespace, op.Name})
		if r.Err == nil || t.n.cfg.NoGCS || t.n.life.Err() != nil || errors.Is(r.Err, errs.ErrShutdown) {
			return
		}
		t.n.limited.warn("an actor's name could not be given up yet", "actor", op.Actor, "name", op.Name, "err", r.Err)
		t.n.work.Go(func() {
			select {
			case <-time.After(freeAgain):
				t.free(op)
			case <-t.n.life.Done():
			}
		})
	})
}

// publish notes where an actor is and tells the owners that asked. The worker that hosts it
// becomes known to them first: they will speak to it.
func (t *names) publish(at owner.ActorAt) {
	t.mu.Lock()
	opts := t.names[at.Actor]
	if at.State == actor.Dead {
		delete(t.at, at.Actor)
	} else {
		t.at[at.Actor] = at
	}
	var jobs []ids.JobID
	for job := range t.seek[at.Actor] {
		jobs = append(jobs, job)
	}
	if at.State == actor.Dead {
		delete(t.seek, at.Actor)
	}
	t.mu.Unlock()
	for _, job := range jobs {
		t.tell(job, at)
	}
	if opts != nil && at.State == actor.Alive {
		rec := t.record(at.Actor.Job(), at.Actor, opts, gcs.ActorAlive)
		t.n.ask(gcs.Update{Actor: rec}, func(gcs.Reply) {}) // a hint for readers of the table; the claim is what counts
	}
}

func (t *names) locate(job ids.JobID, m owner.LocateActor) {
	t.mu.Lock()
	if m.Done {
		delete(t.seek[m.Actor], job)
		t.mu.Unlock()
		return
	}
	if t.seek[m.Actor] == nil {
		t.seek[m.Actor] = make(map[ids.JobID]struct{})
	}
	t.seek[m.Actor][job] = struct{}{}
	at, known := t.at[m.Actor]
	if !known && t.n.jobs.get(m.Actor.Job()) == nil {
		delete(t.seek, m.Actor)
		at, known = gone(m.Actor), true
	}
	t.mu.Unlock()
	if known {
		t.tell(job, at)
	} else {
		t.n.jobs.post(m.Actor.Job(), owner.FromRegistry{Msg: m}) // it is on its way up, or dead
	}
}

func gone(id ids.ActorID) owner.ActorAt {
	return owner.ActorAt{Actor: id, State: actor.Dead, Err: errs.New(errs.CodeActorDied, "actor %v: its job has ended", id)}
}

func (t *names) tell(job ids.JobID, at owner.ActorAt) {
	if s := t.n.clients.get(at.Worker); s != nil {
		t.n.introduce(s, job)
	}
	t.n.jobs.post(job, owner.FromRegistry{Msg: at})
}

// forget drops what a job that ended wanted to hear, and tells who asked for its actors. The job is
// out of the table already.
func (t *names) forget(job ids.JobID) {
	var dead []ids.ActorID
	t.mu.Lock()
	for id, jobs := range t.seek {
		delete(jobs, job)
		if id.Job() == job {
			dead = append(dead, id)
		}
	}
	for id := range t.at {
		if id.Job() == job {
			dead = append(dead, id)
		}
	}
	var named []ids.ActorID
	for id := range t.names {
		if id.Job() == job {
			named = append(named, id)
		}
	}
	t.mu.Unlock()
	for _, id := range dead {
		t.publish(gone(id))
	}
	for _, id := range named { // its claim was answered when the owner had said its last
		t.release(owner.ReleaseName{Actor: id, Err: gone(id).Err})
	}
}

func (t *names) record(job ids.JobID, id ids.ActorID, o *wire.TaskOptions, st gcs.ActorState) gcs.ActorRecord {
	return gcs.ActorRecord{
		Namespace: o.Namespace, Name: o.ActorName, Actor: id.String(), Type: o.Func, Node: t.n.cfg.Name,
		Job: job, Detached: o.Detached, Epoch: t.n.home.Epoch(), State: st, MaxPendingCalls: max(int(o.MaxPendingCalls), 0),
	}
}

func firstActor(rs []gcs.Record) (gcs.ActorRecord, bool) {
	if len(rs) == 0 {
		return gcs.ActorRecord{}, false
	}
	r, ok := rs[0].(gcs.ActorRecord)
	return r, ok
}

func parseActor(s string) (ids.ActorID, error) {
	id, err := ids.ParseTask(s)
	return ids.ActorID(id), err
}
