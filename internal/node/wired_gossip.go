package node

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/gossip"
	"mobula/internal/release"
	"mobula/internal/trust"
	"mobula/internal/trust/join"
	"mobula/raylet/internode"
	"mobula/remote"
	"mobula/remote/membership"
)

// startGossip has this node heard, and hears the others.
func (w *wired) startGossip() error {
	self := w.self()
	cfg := gossip.Config{
		Core: membership.DefaultConfig(self), Cluster: w.cfg.Cluster.Name, Bind: w.at.gossip, Advertise: w.at.shown(portGossip),
		Keys: w.member.GossipKeys(), Dialer: w.cfg.Wires.Dialer, Follow: w.follow, Accuse: w.accuse, Facts: w.facts, Logger: w.cfg.Logger,
	}
	cfg.Core.Random = rand.Int64N
	g, err := gossip.Start(w.sys, cfg)
	if err != nil {
		return err
	}
	w.gossip.Store(&g)
	for _, ev := range w.facts() { // what came meanwhile
		w.tell(ev)
		if b, ok := ev.(membership.Beat); ok {
			w.meet(b.Node)
		}
	}
	w.work.Go(func() { w.joinGossip(g) })
	return nil
}

// self is this node as it gossips of itself.
func (w *wired) self() membership.Node {
	at := membership.Addresses{Gossip: w.at.shown(portGossip), Message: w.at.shown(portNodes), Transfer: w.at.shown(portNodes)}
	return membership.Node{
		Life: w.numbers.life(), Identity: w.identity, Role: gossipRoles[w.member.Role()], Release: release.Version, Protocol: internode.Version, Addresses: at,
	}
}

// gossipRoles are the roles in the words of the gossip.
var gossipRoles = map[trust.Role]membership.Role{trust.ControlPlane: membership.Control, trust.Data: membership.Data, trust.Driver: membership.Driver}

// Between two tries to reach the others by gossip, at first and at most.
const (
	gossipRetry    = 200 * time.Millisecond
	gossipRetryMax = 10 * time.Second
)

// joinGossip leads this node's gossip to the others', until some have answered or the node ends. A node that is alone has nobody to join.
func (w *wired) joinGossip(g gossip.Gossip) {
	for wait := gossipRetry; ; wait = min(2*wait, gossipRetryMax) {
		seeds := w.seeds()
		if len(seeds) > 0 {
			if _, err := g.Join(w.life, seeds); err == nil {
				return
			} else if w.life.Err() == nil {
				w.limited.warn("no other node of the cluster answers by gossip yet", "addresses", seeds, "err", err)
			}
		}
		select {
		case <-w.life.Done():
			return
		case <-time.After(wait):
		}
	}
}

// seeds are where other nodes gossip: those that the control plane has, and its servers.
func (w *wired) seeds() (out []string) {
	w.mu.Lock()
	for _, n := range w.nodes {
		if n.Home != w.numbers.Row().Home && n.Role != membership.Driver {
			out = append(out, n.Addresses.Gossip)
		}
	}
	w.mu.Unlock()
	for _, s := range w.member.Servers() {
		if s.Gossip != w.at.shown(portGossip) {
			out = append(out, s.Gossip)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// follow takes what changes in the membership.
func (w *wired) follow(n membership.Notice) {
	switch n := n.(type) {
	case membership.NodeUp:
		w.lives.heard(n.Node.Life)
		w.mu.Lock()
		w.nodes[n.Node.Home], w.alive[n.Node.Home] = n.Node, n.Node.Epoch
		w.mu.Unlock()
		w.links.chooser.greet(n.Node.Home)
	case membership.NodeSuspect:
		w.doubt(n.Life)
		w.cfg.Logger.Info("a node may be dead", "node", n.Life.Home, "why", n.Why.String())
		w.links.ask(n.Life.Home)
	case membership.NodeDead:
		w.doubt(n.Life)
		w.cfg.Logger.Warn("nothing speaks for a node any more: the control plane is asked", "node", n.Life.Home, "why", n.Why.String())
		if n.Why == membership.Refused {
			w.links.doubt(n.Life.Home, errs.New(errs.CodeWorkerCrashed, "node %s does not run: its machine refuses connections", w.links.nameOf(n.Life.Home)))
		}
	case membership.NodeLeft:
		w.doubt(n.Life)
		w.cfg.Logger.Info("a node ends in order", "node", n.Life.Home)
	case membership.NodeFenced:
		w.fenced(n.Life)
	case membership.HomeClash:
		w.cfg.Logger.Error("two nodes are there with one home: one of them has a copied directory, and will be refused", "node", n.Home, "addresses", n.Addresses)
	case membership.Superseded:
		w.requests.endNode("the control plane has ended this node's life: it was not heard for too long, or another node has its directory", w.errStopping())
	}
}

// doubt notes that the membership has a life alive no more, or is not sure.
func (w *wired) doubt(l remote.Life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alive[l.Home] == l.Epoch {
		delete(w.alive, l.Home)
	}
}

// hears tells whether this node hears a life itself, by the gossip or a connection. The membership believes heartbeats too, and a node that does not gossip would be
// taken to live by those of before.
func (w *wired) hears(l remote.Life) bool {
	if w.links.connected(l) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alive[l.Home] == l.Epoch && w.nodes[l.Home].Role != membership.Driver && w.member.Role() != trust.Driver
}

// meet has a driver's node look at once whether a node of the control plane's table is there, by a connection. It does not gossip, and heartbeats would tell only
// after two or three seconds, for which its program would wait.
func (w *wired) meet(n membership.Node) {
	if w.member.Role() != trust.Driver || n.Home == w.numbers.Row().Home || n.Role == membership.Driver || w.lives.over(n.Life) {
		return
	}
	w.mu.Lock()
	was, known := w.nodes[n.Home]
	if !known || was.Epoch < n.Epoch {
		w.nodes[n.Home] = n
	}
	w.mu.Unlock()
	if !known || was.Epoch < n.Epoch {
		w.links.chooser.greet(n.Home)
	}
}

// fenced ends a life of another node here.
func (w *wired) fenced(l remote.Life) {
	w.mu.Lock()
	if n, ok := w.nodes[l.Home]; ok && n.Epoch <= l.Epoch {
		delete(w.nodes, l.Home)
		delete(w.alive, l.Home)
	}
	w.mu.Unlock()
	w.cfg.Logger.Warn("a node's life is over", "node", l.Home, "epoch", l.Epoch)
	if err := w.links.hub.Fence(l.Home, l.Epoch); err != nil && w.life.Err() == nil {
		w.cfg.Logger.Error("a node's life could not be ended", "node", l.Home, "err", err)
	}
}

// accuse asks the control plane about a life that this node does not hear.
func (w *wired) accuse(a membership.Accuse) { w.control.g.Accuse(a.Life) }

// heard takes a row of the control plane's table of nodes.
func (w *wired) heard(r gcs.NodeRecord) {
	if r.Addresses == nil {
		return // it is on no network
	}
	w.links.called(r.Home, r.Name)
	beat := membership.Beat{Node: nodeOf(r), Number: r.Beats}
	w.lives.heard(beat.Node.Life)
	w.mu.Lock()
	w.beats[r.Home] = beat
	w.changedLocked()
	servers := w.serversLocked(r)
	w.mu.Unlock()
	w.tell(beat)
	if w.gossip.Load() != nil {
		w.meet(beat.Node)
	}
	if servers == nil {
		return
	}
	if err := w.member.Learn(join.Enrolment{GossipKeys: w.member.GossipKeys(), Servers: servers}); err != nil {
		w.limited.warn("where the control plane's servers are could not be kept", "err", err)
	}
}

// serversLocked notes where a control-plane server is, and gives all that are known if that is news: the node keeps them, to find one of them at its next
// start. w.mu is held.
func (w *wired) serversLocked(r gcs.NodeRecord) []join.Addresses {
	at := serverAt(r.Addresses)
	if r.Role != string(trust.ControlPlane) || w.servers[r.Home] == at {
		return nil
	}
	w.servers[r.Home] = at
	var out []join.Addresses
	for _, h := range slices.Sorted(maps.Keys(w.servers)) {
		out = append(out, w.servers[h])
	}
	return out
}

// silentServers names the other control-plane servers that are not among those identities, at most n: first those that may live.
func (w *wired) silentServers(reached []string, n int) (names []string) {
	w.mu.Lock()
	var live, ended []ids.Home
	for _, h := range slices.Sorted(maps.Keys(w.beats)) {
		switch x := w.beats[h].Node; {
		case x.Role != membership.Control || h == w.numbers.Row().Home || slices.Contains(reached, x.Identity):
		case w.lives.over(x.Life):
			ended = append(ended, h)
		default:
			live = append(live, h)
		}
	}
	w.mu.Unlock()
	for _, h := range slices.Concat(live, ended) {
		if len(names) < n {
			names = append(names, w.links.nameOf(h))
		}
	}
	return names
}

// over takes the control plane's verdict on a life.
func (w *wired) over(l remote.Life) {
	w.lives.end(l)
	w.mu.Lock()
	w.changedLocked()
	w.mu.Unlock()
	w.tell(membership.Fenced{Life: l})
}

// left takes note of a node that has ended in order, as it has said itself: it has taken its row out of the table. So its life is over.
func (w *wired) left(l remote.Life) {
	w.mu.Lock()
	delete(w.beats, l.Home)
	w.mu.Unlock()
	w.over(l)
}

// tell passes something on to the membership: one that begins asks for all of it (facts), and one that has ended needs none of it.
func (w *wired) tell(ev membership.Event) {
	if g := w.gossip.Load(); g != nil {
		_ = (*g).Tell(ev)
	}
}

// nodeOf is a row of the table of nodes in the words of the membership.
func nodeOf(r gcs.NodeRecord) membership.Node {
	return membership.Node{
		Life: r.Life(), Identity: r.Identity, Role: gossipRoles[trust.Role(r.Role)], Release: r.Version, Protocol: internode.Version,
		Addresses: membership.Addresses{Gossip: r.Addresses[gcs.AtGossip], Message: r.Addresses[gcs.AtNodes], Transfer: r.Addresses[gcs.AtNodes]},
	}
}

// facts are what a new core of the membership must know besides the gossip.
func (w *wired) facts() (out []membership.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range slices.Sorted(maps.Keys(w.beats)) {
		out = append(out, w.beats[h])
	}
	for _, l := range w.lives.verdicts() {
		out = append(out, membership.Fenced{Life: l})
	}
	return out
}

// address gives where a node takes messages and objects.
func (w *wired) address(_ context.Context, home ids.Home) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n, ok := w.nodes[home]; ok {
		return n.Addresses.Message, nil
	}
	return "", errs.New(errs.CodeNoNode, "nobody has said yet where node %s is", w.links.nameOf(home))
}

// others are the nodes that there are, but for this one.
func (w *wired) others() (out []ids.Home) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for h := range w.nodes {
		if h != w.numbers.Row().Home {
			out = append(out, h)
		}
	}
	slices.Sort(out)
	return out
}
