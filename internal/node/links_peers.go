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

// toPeer passes on what an owner of this node says to that of a job of another home.
func (l *links) toPeer(x dealing.Pair, m owner.PeerMsg) {
	if !l.early.keep(func() { l.passToPeer(x, m) }) {
		l.passToPeer(x, m)
	}
}

// passToPeer is toPeer. If the job, or its home, is gone, the answer is made here.
func (l *links) passToPeer(x dealing.Pair, m owner.PeerMsg) {
	node := x.Far.Home()
	if l.alone() {
		l.notReached(x, m, errs.From(l.numbers.Answers(x.Far)))
		return
	}
	if speaks := l.hub.Agreed(node); speaks != 0 && speaks < internode.PeersTalk {
		l.notReached(x, m, tooOld(node, speaks))
		return
	}
	l.dealings.Note(x) // before it is looked whether the node is dead: whoever ends its life looks here after that
	if l.owners.get(x.Own) == nil {
		l.dealings.Forget(x) // the job is over, and the other was told, if it had to do with it
		return
	}
	switch {
	case l.lives.dead(node):
		l.peerGone(x, homeDead(node))
		return
	case !slices.Contains(l.cfg.Cluster.Others(), node):
		l.seek(node)
	}
	l.say(node, betweenOwners(x.Own, x.Far, m))
}

// notReached refuses what was said to an owner that this node cannot talk with, if an answer is waited for.
func (l *links) notReached(x dealing.Pair, m owner.PeerMsg, err *errs.Error) {
	if owner.Asks(m) {
		l.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.Unreachable{Err: err}})
	}
}

// tooOld is the error of a node whose release has no messages for owners.
func tooOld(node ids.Home, speaks uint32) *errs.Error {
	return errs.New(errs.CodeVersion, "node %v speaks version %d of the messages between nodes: references to objects of its jobs pass from version %d on", node, speaks, internode.PeersTalk)
}

func homeDead(node ids.Home) *errs.Error {
	return errs.New(errs.CodeWorkerCrashed, "node %v, its home, is dead", node)
}

// betweenOwners is what one owner says to another as a message between nodes.
func betweenOwners(from, to ids.JobID, m owner.PeerMsg) internode.Msg {
	if w, ok := m.(owner.Words); ok {
		return &internode.PeerWords{From: from, To: to, Msgs: []wire.Msg{w.Msg}}
	}
	return &internode.ToPeer{From: from, To: to, Msg: m}
}

// fromPeer takes what the owner of a job of another home says to one of this node, or says that the job is over.
func (l *links) fromPeer(x dealing.Pair, m owner.PeerMsg) {
	if _, over := m.(owner.JobGone); over {
		l.dealings.Forget(x)
		l.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: m})
		return
	}
	l.dealings.Note(x) // before it is looked whether there is an owner: whoever takes that away looks here after that
	if o := l.owners.get(x.Own); o != nil {
		o.ref.Deliver(owner.FromOwner{Job: x.Far, Msg: m})
		return
	}
	l.dealings.Forget(x)
	if owner.Asks(m) {
		l.say(x.Far.Home(), betweenOwners(x.Own, x.Far, owner.JobGone{}))
	}
}

// peersOver tells those that a job of this node had to do with that it is over.
func (l *links) peersOver(job ids.JobID) {
	for _, far := range l.dealings.Take(job) {
		l.say(far.Home(), betweenOwners(job, far, owner.JobGone{}))
	}
}

// peersGone tells the owners of this node that the jobs of another are gone with it.
func (l *links) peersGone(node ids.Home, err *errs.Error) {
	for _, x := range l.dealings.WithHome(node) {
		l.peerGone(x, err)
	}
}

func (l *links) peerGone(x dealing.Pair, err *errs.Error) {
	l.dealings.Forget(x)
	l.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.JobGone{Err: err}})
}

// peersRejoined tells the owners of this node that another was started again, which may have its jobs still.
func (l *links) peersRejoined(node ids.Home) {
	for _, x := range l.dealings.WithHome(node) {
		l.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.Rejoined{}})
	}
}

// peersTalk refuses what is waited for of a node that is connected now, if its release has no messages for owners.
func (l *links) peersTalk(node ids.Home) {
	speaks := l.hub.Agreed(node)
	if speaks == 0 || speaks >= internode.PeersTalk {
		return
	}
	for _, x := range l.dealings.WithHome(node) {
		l.owners.post(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.Unreachable{Err: tooOld(node, speaks)}})
	}
}

// seekEvery is how long it is between two questions for a node that this one has not heard of, while the control plane does not answer.
const seekEvery = time.Second

// seek finds out whether a node that this one has not heard of is of the cluster at all. If it is not, its jobs are gone.
func (l *links) seek(node ids.Home) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sought[node] {
		return
	}
	l.sought[node] = true
	l.work.Go(func() {
		is, known := l.isMember(node)
		l.mu.Lock()
		delete(l.sought, node)
		l.mu.Unlock()
		if known && !is {
			l.peersGone(node, errs.New(errs.CodeNotFound, "node %v, its home, is not in the cluster", node))
		}
	})
}

// isMember asks the control plane whether a node is of the cluster and lives, until it answers or this node ends.
func (l *links) isMember(node ids.Home) (is, known bool) {
	for l.life.Err() == nil {
		ctx, cancel := context.WithTimeout(l.life, tableTime)
		rows, err := l.wired.control.nodes(ctx)
		cancel()
		if err == nil {
			return slices.ContainsFunc(rows, func(r gcs.NodeRecord) bool { return r.Home == node && !r.Dead }), true
		}
		select {
		case <-l.life.Done():
		case <-time.After(seekEvery):
		}
	}
	return false, false
}
