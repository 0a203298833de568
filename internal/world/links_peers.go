package world

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/dealing"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/wire"
)

// toPeer passes on what an owner of this node says to that of a job of another home.
func (l *links) toPeer(x dealing.Pair, m owner.PeerMsg) {
	if l.n.owners[x.Own] == nil {
		return // the job is over, and the other was told
	}
	if !l.n.believes(l.n.w.node(x.Far.Home())) {
		l.peerGone(x)
		return
	}
	l.dealings.Note(x)
	l.say(x.Far.Home(), betweenOwners(x.Own, x.Far, m))
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
	_, over := m.(owner.JobGone)
	switch {
	case over:
		l.dealings.Forget(x)
		l.n.toOwner(x.Own, owner.FromOwner{Job: x.Far, Msg: m})
	case l.n.owners[x.Own] != nil:
		l.dealings.Note(x)
		l.n.toOwner(x.Own, owner.FromOwner{Job: x.Far, Msg: m})
	case owner.Asks(m):
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
func (l *links) peersGone(node ids.Home) {
	for _, x := range l.dealings.WithHome(node) {
		l.peerGone(x)
	}
}

func (l *links) peerGone(x dealing.Pair) {
	l.dealings.Forget(x)
	l.n.toOwner(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.JobGone{Err: errs.New(errs.CodeWorkerCrashed, "node %v, its home, is dead", x.Far.Home())}})
}

// peersRejoined tells the owners of this node that another was started again, which may have its jobs still.
func (l *links) peersRejoined(node ids.Home) {
	for _, x := range l.dealings.WithHome(node) {
		l.n.toOwner(x.Own, owner.FromOwner{Job: x.Far, Msg: owner.Rejoined{}})
	}
}
