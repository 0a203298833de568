package actors

import "slices"

// Down is the notice of a component's death: a stop, or a failure beyond its policy.
type Down struct {
	Kind, Name, Path string
	Restarts         int
	Err              error // nil for a stop; wraps errs.ErrComponentFailed for a failure
}

type watch struct{ tell func(Down) }

// Watch posts notice(down) to r when target has stopped, once, after everything that
// target posted to r; at once if it has stopped already. A restart is not a death. The notice may exceed the
// mailbox's bound. notice runs on the target's goroutine.
func (r *Ref[E]) Watch(target Parent, notice func(Down) E) (cancel func()) {
	n := target.treeNode()
	s := n.sys
	w := &watch{tell: func(d Down) {
		defer s.recovered("a Watch notice of " + r.m.n.path)
		r.m.force(notice(d), 0)
	}}
	s.mu.Lock()
	if !n.gone {
		n.watchers = append(n.watchers, w)
		s.mu.Unlock()
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if i := slices.Index(n.watchers, w); i >= 0 {
				n.watchers = slices.Delete(n.watchers, i, i+1)
			}
		}
	}
	d := Down{Kind: n.kind, Name: n.name, Path: n.path, Restarts: n.nrestarts, Err: n.failed}
	s.mu.Unlock()
	w.tell(d)
	return func() {}
}
