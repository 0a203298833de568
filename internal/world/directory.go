package world

import (
	"maps"
	"slices"

	"mobula/gcs"
	"mobula/gcs/directory"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/raylet/owner"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

func (n *Node) startDirectory() {
	n.directory = &part[directory.Event, directory.Effect]{do: n.doDirectory, poisoned: n.refuseName}
	n.directory.build = func(restart int) (core[directory.Event, directory.Effect], []directory.Event) {
		c := directory.New(n.home, n.name)
		if restart == 0 {
			return c, nil
		}
		return c, []directory.Event{directory.Rebuild{Jobs: slices.Sorted(maps.Keys(n.owners))}}
	}
	startPart(n, kindDirectory, "directory", n.directory)
}

// fromOwner takes an owner's message about actors.
func (n *Node) fromOwner(job ids.JobID, msg owner.DirectoryAsk) {
	switch m := msg.(type) {
	case owner.ClaimName:
		n.directory.box.put(directory.Claim{Job: job, Actor: m.Actor, Opts: m.Opts})
	case owner.ReleaseName:
		n.directory.box.put(directory.Release{Actor: m.Actor, Opts: m.Opts, Err: m.Err})
	case owner.PublishActor:
		n.directory.box.put(directory.Publish{Place: directory.Place(m.At)})
	case owner.LocateActor:
		n.directory.box.put(directory.Locate{Job: job, Actor: m.Actor, Done: m.Done})
	case owner.CallsLost:
		n.toOwner(m.Actor.Job(), owner.FromDirectory{Msg: m})
	case owner.KillActor:
		n.directory.box.put(directory.Kill(m))
	}
}

// tellOwner passes on what the directory says to an owner.
func (n *Node) tellOwner(job ids.JobID, m directory.Msg) {
	say := func(out owner.DirectoryNews) { n.toOwner(job, owner.FromDirectory{Msg: out}) }
	switch m := m.(type) {
	case directory.NameClaimed:
		say(owner.NameClaimed(m))
	case directory.NameHeld:
		say(owner.NameHeld(m))
	case directory.Place:
		life := n.life
		if m.Worker != 0 { // it will speak to it
			_ = n.jobs.askNow(func(a jobs.Ask) jobs.Event { return jobs.Guest{Ask: a, Client: m.Worker, Job: job} })
		}
		if n.life == life {
			say(owner.ActorAt(m))
		}
	case directory.Sought:
		say(owner.LocateActor{Actor: m.Actor})
	case directory.Kill:
		say(owner.KillRequested(m))
	case directory.Restate:
		say(owner.Restate{})
	}
}

// refuseName answers an event that the directory drops.
func (n *Node) refuseName(ev directory.Event) {
	switch ev := ev.(type) {
	case directory.Claim:
		n.tellOwner(ev.Job, directory.NameClaimed{Actor: ev.Actor, Err: errPoisoned})
	case directory.Claimed:
		n.tellOwner(ev.Job, directory.NameClaimed{Actor: ev.Actor, Err: errPoisoned})
		n.directory.box.put(directory.Release{Actor: ev.Actor, Opts: ev.Opts})
	case directory.Kill:
		n.tellOwner(ev.Actor.Job(), ev)
	case directory.Locate:
		if !ev.Done {
			n.tellOwner(ev.Job, directory.Place{Actor: ev.Actor, State: actor.Locating, Err: errPoisoned})
		}
	}
}

func (n *Node) doDirectory(e directory.Effect) {
	put := func(ev directory.Event) { n.directory.box.put(ev) }
	switch e := e.(type) {
	case directory.ToOwner:
		n.tellOwner(e.Job, e.Msg)
	case directory.ClaimRow:
		n.control.ask(gcs.Claim{Actor: n.record(e.Job, e.Actor, e.Opts, gcs.ActorPending)}, func(r gcs.Reply) {
			put(directory.Claimed{Claim: e.Claim, Holder: holderOf(r.Records), Err: errs.From(r.Err)})
		})
	case directory.FreeRow:
		n.control.ask(gcs.Free{Namespace: e.Namespace, Name: e.Name.Name, Actor: e.Actor.String()}, func(r gcs.Reply) {
			put(directory.Freed{FreeRow: e, Err: errs.From(r.Err)})
		})
	case directory.UpdateRow:
		n.control.ask(gcs.Update{Actor: n.record(e.Actor.Job(), e.Actor, e.Opts, gcs.ActorAlive)}, func(gcs.Reply) {})
	case directory.ListRows:
		n.control.ask(gcs.List{Bucket: gcs.Actors}, func(r gcs.Reply) { put(directory.Listed{Rows: rowsOf(r.Records), Err: errs.From(r.Err)}) })
	case directory.After:
		n.directory.after(e.D, e.Ev)
	case directory.Warn:
	default:
		n.w.fail("the directory asks for a %T, which nobody does", e)
	}
}

func (n *Node) record(job ids.JobID, id ids.ActorID, o *wire.TaskOptions, st gcs.ActorState) gcs.ActorRecord {
	return gcs.ActorRecord{
		Namespace: o.Namespace, Name: o.ActorName, Actor: id.String(), Type: o.Func, Node: n.name, Job: job, Detached: o.Detached, Epoch: n.numbers.lives, State: st,
	}
}

func holderOf(rs []gcs.Record) ids.ActorID {
	if len(rs) == 0 {
		return ids.ActorID{}
	}
	id, _ := ids.ParseTask(rs[0].(gcs.ActorRecord).Actor)
	return ids.ActorID(id)
}

func rowsOf(rs []gcs.Record) []directory.Row {
	var out []directory.Row
	for _, r := range rs {
		a := r.(gcs.ActorRecord)
		if id, err := ids.ParseTask(a.Actor); err == nil {
			out = append(out, directory.Row{Actor: ids.ActorID(id), Opts: &wire.TaskOptions{Namespace: a.Namespace, ActorName: a.Name, Detached: a.Detached, Func: a.Type}})
		}
	}
	return out
}
