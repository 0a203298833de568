package node

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/dealing"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/wire"
)

// What the owner of a job of this node and the owner of a job of another home say to each other (package raylet/owner, FromOwner).

// earlyWords is what owners of restored jobs say to those of other homes before this node talks with any.
type earlyWords struct {
	over atomic.Bool
	mu   sync.Mutex
	all  []func() // guarded by mu
}

// keep keeps what is said early, and is false where it is not early.
func (e *earlyWords) keep(say func()) bool {
	if e.over.Load() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over.Load() {
		return false
	}
	e.all = append(e.all, say)
	return true
}

// end says all of it, before anything else is said.
func (e *earlyWords) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, say := range e.all {
		say()
	}
	e.all = nil
	e.over.Store(true)
}

// tell passes on what an owner of this node says to that of a job of another home.
func (f *farOwners) tell(x dealing.Pair, m owner.PeerMsg) {
	if !f.early.keep(func() { f.pass(x, m) }) {
		f.pass(x, m)
	}
}

// pass is tell. If the job, or its home, is gone, the answer is made here.
func (f *farOwners) pass(x dealing.Pair, m owner.PeerMsg) {
	node := x.Far.Home()
	if f.links.alone() {
		f.notReached(x, m, errs.From(f.numbers.Answers(x.Far)))
		return
	}
	if speaks := f.links.hub.Agreed(node); speaks != 0 && speaks < internode.PeersTalk {
		f.notReached(x, m, f.tooOld(node, speaks))
		return
	}
	f.dealings.Note(x) // before it is looked whether the node is dead: whoever ends its life looks here after that
	if f.owners.get(x.Own) == nil {
		f.dealings.Forget(x) // the job is over, and the other was told, if it had to do with it
		return
	}
	switch {
	case f.links.lives.dead(node):
		f.oneGone(x, f.homeDead(node))
		return
	case !slices.Contains(f.cfg.Cluster.Others(), node):
		f.seek(node)
	}
	f.say(node, betweenOwners(x.Own, x.Far, m))
}

// say says something to another node. Before the first talk with it nobody knows whether its release has such a message: what is said waits, and the node is asked for
// its time, which every release understands.
func (f *farOwners) say(node ids.Home, m internode.Msg) {
	f.mu.Lock()
	waiting, waits := f.unmet[node]
	if !waits && f.links.hub.Agreed(node) != 0 {
		f.mu.Unlock()
		f.links.say(node, m)
		return
	}
	f.unmet[node] = append(waiting, m)
	f.mu.Unlock()
	if !waits {
		f.links.say(node, f.links.askTime())
	}
}

// notReached refuses what was said to an owner that this node cannot talk with, if an answer is waited for.
func (f *farOwners) notReached(x dealing.Pair, m owner.PeerMsg, err *errs.Error) {
	if owner.Asks(m) {
		f.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.Unreachable{Err: err}})
	}
}

// tooOld is the error of a node whose release has no messages for owners.
func (f *farOwners) tooOld(node ids.Home, speaks uint32) *errs.Error {
	return errs.New(errs.CodeVersion, "node %s speaks version %d of the messages between nodes: references to objects of its jobs pass from version %d on",
		f.links.nameOf(node), speaks, internode.PeersTalk)
}

func (f *farOwners) homeDead(node ids.Home) *errs.Error {
	return errs.New(errs.CodeWorkerCrashed, "node %s, its home, is dead", f.links.nameOf(node))
}

// betweenOwners is what one owner says to another as a message between nodes.
func betweenOwners(from, to ids.JobID, m owner.PeerMsg) internode.Msg {
	if w, ok := m.(owner.Words); ok {
		return &internode.PeerWords{From: from, To: to, Msgs: []wire.Msg{w.Msg}}
	}
	return &internode.ToPeer{From: from, To: to, Msg: m}
}

// told takes what the owner of a job of another home says to one of this node, or says that the job is over.
func (f *farOwners) told(x dealing.Pair, m owner.PeerMsg) {
	if _, over := m.(owner.JobGone); over {
		f.dealings.Forget(x)
		f.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: m})
		return
	}
	f.dealings.Note(x) // before it is looked whether there is an owner: whoever takes that away looks here after that
	if o := f.owners.get(x.Own); o != nil {
		o.ref.Deliver(owner.FromOwner{Job: x.Far, Msg: m})
		return
	}
	f.dealings.Forget(x)
	if owner.Asks(m) {
		f.say(x.Far.Home(), betweenOwners(x.Own, x.Far, owner.JobGone{}))
	}
}

// over tells those that a job of this node had to do with that it is over.
func (f *farOwners) over(job ids.JobID) {
	for _, far := range f.dealings.Take(job) {
		f.say(far.Home(), betweenOwners(job, far, owner.JobGone{}))
	}
}

// gone tells the owners of this node that the jobs of another are gone with it.
func (f *farOwners) gone(node ids.Home, err *errs.Error) {
	f.mu.Lock()
	delete(f.unmet, node)
	f.mu.Unlock()
	for _, x := range f.dealings.WithHome(node) {
		f.oneGone(x, err)
	}
}

func (f *farOwners) oneGone(x dealing.Pair, err *errs.Error) {
	f.dealings.Forget(x)
	f.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.JobGone{Err: err}})
}

// rejoined tells the owners of this node that another was started again, which may have its jobs still.
func (f *farOwners) rejoined(node ids.Home) {
	for _, x := range f.dealings.WithHome(node) {
		f.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.Rejoined{}})
	}
}

// met says what has waited for a node that is connected now. If its release has no messages for owners, that is refused, and with it whatever else is waited for there.
func (f *farOwners) met(node ids.Home) {
	f.mu.Lock()
	speaks := f.links.hub.Agreed(node)
	if speaks == 0 {
		f.mu.Unlock()
		return
	}
	waiting := f.unmet[node]
	delete(f.unmet, node)
	if speaks >= internode.PeersTalk {
		for _, m := range waiting {
			f.links.say(node, m) // what is said from now on comes after it
		}
	}
	f.mu.Unlock()
	if speaks >= internode.PeersTalk {
		return
	}
	for _, x := range f.dealings.WithHome(node) {
		f.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.Unreachable{Err: f.tooOld(node, speaks)}})
	}
}

// seekEvery is how long it is between two questions for a node that this one has not heard of, while the control plane does not answer.
const seekEvery = time.Second

// seek finds out whether a node that this one has not heard of is of the cluster at all. If it is not, its jobs are gone.
func (f *farOwners) seek(node ids.Home) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sought[node] {
		return
	}
	f.sought[node] = true
	f.work.Go(func() {
		is, known := f.isMember(node)
		f.mu.Lock()
		delete(f.sought, node)
		f.mu.Unlock()
		if known && !is {
			f.gone(node, errs.New(errs.CodeNotFound, "node %s, its home, is not in the cluster", f.links.nameOf(node)))
		}
	})
}

// isMember asks the control plane whether a node is of the cluster and lives, until it answers or this node ends.
func (f *farOwners) isMember(node ids.Home) (is, known bool) {
	for f.life.Err() == nil {
		ctx, cancel := context.WithTimeout(f.life, tableTime)
		rows, err := f.control.nodes(ctx)
		cancel()
		if err == nil {
			return slices.ContainsFunc(rows, func(r gcs.NodeRecord) bool { return r.Home == node && !r.Dead }), true
		}
		select {
		case <-f.life.Done():
		case <-time.After(seekEvery):
		}
	}
	return false, false
}
