package node

import "mobula/wire"

// endNode ends this node, which is of its cluster no more: it must not go on beside what takes its place.
func (w *wired) endNode(why string) {
	w.cfg.Logger.Error("the node ends", "why", why)
	w.links.sessions.sayBye(w.cfg.Name, func(wire.Role) bool { return true })
	if w.requests.stop.Load() != nil {
		w.requests.passStop()
	}
}
