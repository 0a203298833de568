package node

import (
	"errors"
	"time"

	"mobula/actors"
	"mobula/gcs"
	"mobula/gcs/directory"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/raylet/owner"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// start adds the directory of actors to the tree, below nothing: it is there before the control plane, which starts when it is first
// asked, and after the owners.
func (d *directoryShell) start() (err error) {
	d.ref, err = actors.Spawn(d.sys, actors.Spec[directory.Event, directory.Effect]{
		Kind: "directory", Name: "directory",
		New:      d.build,
		Do:       d.do,
		OnPoison: func(_ *actors.Ref[directory.Event], ev directory.Event, err error) { d.refuse(ev, err) },
		Policy:   actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	return err
}

// build makes the core. One that follows another asks the owners and the control plane for all it is to know.
func (d *directoryShell) build(start actors.Start) (actors.Core[directory.Event, directory.Effect], []directory.Event, error) {
	core := directory.New(d.numbers.Row().Home, d.cfg.Name)
	if start.Restart == 0 {
		return core, nil, nil
	}
	var jobs []ids.JobID
	for _, o := range d.owners.all() {
		jobs = append(jobs, o.job)
	}
	return core, []directory.Event{directory.Rebuild{Jobs: jobs}}, nil
}

// deliver tells the directory. One that has failed for good has its askers told.
func (d *directoryShell) deliver(ev directory.Event) {
	select {
	case <-d.ref.Done():
		d.refuse(ev, errs.New(errs.CodeComponentFailed, "the directory of actors has ended"))
	default:
		d.ref.Deliver(ev)
	}
}

// refuse answers an event that the directory will not.
func (d *directoryShell) refuse(ev directory.Event, err error) {
	switch ev := ev.(type) {
	case directory.Claim:
		d.tellOwner(ev.Job, directory.NameClaimed{Actor: ev.Actor, Err: errs.From(err)})
	case directory.Claimed:
		d.tellOwner(ev.Job, directory.NameClaimed{Actor: ev.Actor, Err: errs.From(err)})
		d.deliver(directory.Release{Actor: ev.Actor, Opts: ev.Opts}) // its creation fails, whoever has the name
	case directory.Kill:
		d.tellOwner(ev.Actor.Job(), ev)
	case directory.Locate:
		if !ev.Done {
			d.tellOwner(ev.Job, directory.Place{Actor: ev.Actor, State: actor.Locating, Err: errs.From(err)})
		}
	}
}

// fromOwner takes an owner's message about actors.
func (d *directoryShell) fromOwner(job ids.JobID, msg owner.DirectoryAsk) {
	switch m := msg.(type) {
	case owner.ClaimName:
		d.deliver(directory.Claim{Job: job, Actor: m.Actor, Opts: m.Opts})
	case owner.ReleaseName:
		d.deliver(directory.Release{Actor: m.Actor, Opts: m.Opts, Err: m.Err})
	case owner.PublishActor:
		d.deliver(directory.Publish{Place: directory.Place(m.At)})
	case owner.LocateActor:
		d.deliver(directory.Locate{Job: job, Actor: m.Actor, Done: m.Done})
	case owner.CallsLost:
		d.toOwnerOf(m.Actor, m)
	case owner.KillActor:
		if d.here(m.Actor) {
			d.deliver(directory.Kill(m))
		}
	default:
		panic(errs.New(errs.CodeInvalid, "an owner says a %T to the directory, which nobody takes", m)) // a fault of the program
	}
}

// toOwnerOf passes on what an owner says to the owner of another job's actor, which has no answer.
func (d *directoryShell) toOwnerOf(a ids.ActorID, m owner.DirectoryNews) {
	if d.here(a) {
		d.owners.post(a.Job(), owner.FromDirectory{Msg: m})
	}
}

// here tells whether an actor's home is this one. There is no way to others.
func (d *directoryShell) here(a ids.ActorID) bool {
	err := d.numbers.Answers(a.Job())
	if err != nil {
		d.limited.warn("a message for an actor of another home is refused", "actor", a, "err", err)
	}
	return err == nil
}

// tellOwner passes on what the directory says to an owner.
func (d *directoryShell) tellOwner(job ids.JobID, m directory.Msg) {
	var out owner.DirectoryNews
	switch m := m.(type) {
	case directory.NameClaimed:
		out = owner.NameClaimed(m)
	case directory.NameHeld:
		out = owner.NameHeld(m)
	case directory.Place:
		if m.Worker != 0 { // it will speak to it
			_ = d.jobs.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.Guest{Ask: a, Client: m.Worker, Job: job} }) // else the node ends
		}
		out = owner.ActorAt(m)
	case directory.Sought:
		out = owner.LocateActor{Actor: m.Actor}
	case directory.Kill:
		out = owner.KillRequested(m)
	case directory.Restate:
		out = owner.Restate{}
	default:
		panic(errs.New(errs.CodeInvalid, "the directory says a %T to an owner, which nobody takes", m)) // a fault of the program
	}
	d.owners.post(job, owner.FromDirectory{Msg: out})
}

// do carries out one effect.
func (d *directoryShell) do(self *actors.Ref[directory.Event], e directory.Effect) {
	switch e := e.(type) {
	case directory.ToOwner:
		d.tellOwner(e.Job, e.Msg)
	case directory.ClaimRow:
		d.control.ask(gcs.Claim{Actor: d.record(e.Job, e.Actor, e.Opts, gcs.ActorPending)}, func(r gcs.Reply) {
			held, _ := firstActor(r.Records)
			holder, _ := parseActor(held.Actor) // none: it is not known who
			self.Deliver(directory.Claimed{Claim: e.Claim, Holder: holder, Err: errs.From(r.Err)})
		})
	case directory.FreeRow:
		d.control.ask(gcs.Free{Namespace: e.Namespace, Name: e.Name.Name, Actor: e.Actor.String()}, func(r gcs.Reply) {
			final := d.cfg.NoGCS || d.life.Err() != nil || errors.Is(r.Err, errs.ErrShutdown)
			self.Deliver(directory.Freed{FreeRow: e, Err: errs.From(r.Err), Final: final})
		})
	case directory.UpdateRow:
		d.control.ask(gcs.Update{Actor: d.record(e.Actor.Job(), e.Actor, e.Opts, gcs.ActorAlive)}, func(gcs.Reply) {})
	case directory.ListRows:
		d.listNames(self)
	case directory.After:
		self.After(e.D, e.Ev)
	case directory.Warn:
		if !errors.Is(e.Err, errs.ErrShutdown) {
			d.limited.warn(e.What, "actor", e.Row.Actor, "name", e.Row.Name.Name, "err", e.Err)
		}
	}
}

// listNames reads the table of names; one that nobody has begun is empty.
func (d *directoryShell) listNames(self *actors.Ref[directory.Event]) {
	if !d.control.begun.Load() {
		self.Deliver(directory.Listed{})
		return
	}
	d.control.ask(gcs.List{Bucket: gcs.Actors}, func(r gcs.Reply) {
		out := directory.Listed{Err: errs.From(r.Err)}
		for _, rec := range r.Records {
			rec, ok := rec.(gcs.ActorRecord)
			id, err := parseActor(rec.Actor)
			if ok && err == nil {
				out.Rows = append(out.Rows, directory.Row{Actor: id, Opts: &wire.TaskOptions{
					Namespace: rec.Namespace, ActorName: rec.Name, Detached: rec.Detached, Func: rec.Type,
				}})
			}
		}
		self.Deliver(out)
	})
}

func (d *directoryShell) record(job ids.JobID, id ids.ActorID, o *wire.TaskOptions, st gcs.ActorState) gcs.ActorRecord {
	return gcs.ActorRecord{
		Namespace: o.Namespace, Name: o.ActorName, Actor: id.String(), Type: o.Func, Node: d.cfg.Name,
		Job: job, Detached: o.Detached, Epoch: d.numbers.Epoch(), State: st, MaxPendingCalls: max(int(o.MaxPendingCalls), 0),
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
