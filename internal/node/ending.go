package node

import (
	"mobula/actors"
	"mobula/internal/errs"
	"mobula/wire"
)

// ofOneJob is the policy of components that serve one job: one that never comes up is tried again each second, and does not end the node, which others use.
var ofOneJob = actors.Policy{MaxRestarts: actors.Unlimited}

// endNode has whoever runs this node end it, and tells its clients why: it must not go on.
func (r *requests) endNode(why string, err *errs.Error) {
	r.cfg.Logger.Error("the node ends", "why", why)
	r.links.sessions.sayBye(err, func(wire.Role) bool { return true })
	if r.stop.Load() != nil {
		r.passStop()
	}
}

// component takes the news of a component. One that has failed for good ends the node: the others would wait for it.
func (n *Node) component(ev actors.Event) {
	n.obs.Component(ev)
	if ev.Kind != actors.EventFailed || n.closing.Load() {
		return
	}
	err := errs.New(errs.CodeComponentFailed, "node %s ends: a component has failed for good: %v", n.cfg.Name, ev.Err)
	if n.requests.failed.CompareAndSwap(nil, err) {
		n.work.Go(func() { n.requests.endNode(err.Error(), err) })
	}
}

// Failed is why the node had to end, if a component of it has failed for good; else nil.
func (n *Node) Failed() error { return asError(n.requests.failed.Load()) }
