package shell

import "slices"

// Reached is how much of a set of servers one of them reaches.
type Reached struct {
	Size, Needed int      // servers of the set, this one included, and how many of them must be there for anything to be written
	Others       []string // identities of the others that it has a connection to
}

// Lost tells whether too few servers are there.
func (r *Reached) Lost() bool { return 1+len(r.Others) < r.Needed }

// Reached tells how much of its set this server reaches; false: it is none of a cluster, or does not know its set yet.
func (g *GCS) Reached() (r Reached, known bool) {
	if g.srv == nil || g.cfg.Listen == nil {
		return r, false
	}
	info, err := g.srv.ns.Jsz(nil)
	if err != nil || info.Meta == nil || info.Meta.Size >= unreachable {
		return r, false
	}
	routes, err := g.srv.ns.Routez(nil)
	if err != nil {
		return r, false
	}
	for _, x := range routes.Routes { // several to each server
		if !slices.Contains(r.Others, x.RemoteName) {
			r.Others = append(r.Others, x.RemoteName)
		}
	}
	r.Size, r.Needed = info.Meta.Size, info.Meta.QuorumNeeded
	return r, true
}
