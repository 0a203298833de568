package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/internal/trust/join"
)

// Times of the care for whom the node trusts.
const (
	careEvery     = time.Second
	sweepEvery    = time.Minute      // how often a server marks the tokens that have expired, and looks whether all that was changed is published
	askWhyEvery   = 30 * time.Second // how often a node that its control plane refuses asks why
	askWhyAfter   = 2 * time.Second  // the first time
	stagePatience = 10 * time.Minute // how long a rotation waits for nodes that do not say that they have its keys
	spreadEach    = 5 * time.Millisecond
)

// trusting is the care for whom the node trusts, on one goroutine: it follows the trust bundles, has certificate and keys renewed, and on a server cares
// for the tokens and for a rotation of the gossip's key.
type trusting struct {
	*wired
	told uint64 // number of the bundle that the control plane was told

	// Times by the node's clock.
	pause  time.Duration // between two renewals, since the first has not given all that lacks
	again  int64         // when the next may be; 0: at once
	askWhy int64         // when to ask why there is no connection to the control plane; 0: there is one
	swept  int64         // 0: never
	stage  uint64        // of a rotation, as seen last
	since  int64         // when it was seen first
}

// run is the goroutine, until the node ends.
func (t *trusting) run() {
	tick := time.NewTicker(careEvery)
	defer tick.Stop()
	for t.care() {
		select {
		case <-t.life.Done():
			return
		case <-t.bundles.Ready():
		case <-tick.C:
		}
	}
}

// care does what is to be done now. It gives false once this node is of the cluster no more.
func (t *trusting) care() bool {
	for _, s := range t.bundles.Take() {
		t.again, t.pause = 0, 0
		if err := t.member.Follow(s); err != nil {
			t.limited.warn("a trust bundle was refused, or could not be kept", "err", err)
		}
	}
	err := t.member.Live().Revoked()
	if err == nil && t.asks() {
		err = t.renew()
	}
	switch {
	case errors.Is(err, trust.ErrRevoked):
		t.requests.endNode("this node was revoked: "+err.Error(), t.errStopping())
		return false
	case err != nil && t.life.Err() == nil:
		t.limited.warn("the node's certificate or the keys of the gossip could not be renewed; they are asked for again", "err", err)
	}
	if !t.lacks() {
		t.follows()
	}
	if t.serves() {
		if err := t.serve(); err != nil && t.life.Err() == nil {
			t.limited.warn("the cluster's tokens and keys could not be cared for; it is tried again", "err", err)
		}
	}
	return true
}

// asks tells whether it is time to ask for a certificate: the present one is to be renewed, or a root or key lacks, or the control plane lets this node in no more. If
// the answer does not help, the next question waits for longer.
func (t *trusting) asks() bool {
	now := t.clock.Now()
	switch {
	case !t.lacks() && t.member.Live().Due() > 0:
		t.again, t.pause = 0, 0
		return t.refused(now)
	case now < t.again:
		return false
	}
	t.pause = min(max(2*t.pause, careEvery), sweepEvery)
	t.again = now + int64(t.pause)
	return true
}

// lacks tells whether the node has other roots or keys than the trust bundle names.
func (w *wired) lacks() bool {
	roots, keys := w.member.Lacks()
	return roots || keys
}

// follows has the gossip use the keys of the bundle that the node follows, and tells the control plane that it does.
func (t *trusting) follows() {
	number := t.member.Bundle().Number
	if number == t.told {
		return
	}
	if err := (*t.gossip.Load()).SetKeys(t.member.GossipKeys()); err != nil {
		t.limited.warn("the keys of the gossip could not be changed", "err", err)
		return
	}
	t.control.g.Follow(number)
	t.told = number
}

// refused tells whether it is time to ask why this node has no connection to its control plane. It may have been revoked, and cut off before it heard of it.
func (t *trusting) refused(now int64) bool {
	switch {
	case t.serves() || t.control.g.Connected():
		t.askWhy = 0
	case t.askWhy == 0:
		t.askWhy = now + int64(askWhyAfter)
	case now >= t.askWhy:
		t.askWhy = now + int64(askWhyEvery)
		return true
	}
	return false
}

// renew gets the node's next certificate, with the roots and keys that belong to it. Nodes do not all ask at once.
func (t *trusting) renew() error {
	ctx, cancel := context.WithTimeout(t.life, join.Timeout)
	defer cancel()
	if t.serves() {
		keys, err := t.authority.GossipKeys(ctx)
		if err != nil {
			return err
		}
		if err := t.member.Learn(join.Enrolment{GossipKeys: keys, Servers: t.member.Servers()}); err != nil {
			return err
		}
		return t.member.Certify(ctx, t.authority, t.numbers.Row())
	}
	select {
	case <-time.After(rand.N(spreadEach * time.Duration(1+len(t.others())))):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return t.member.Renew(ctx, t.claim)
}

// serve is what a control-plane server does for all.
func (t *trusting) serve() error {
	var err error
	if now := t.clock.Now(); t.swept == 0 || now-t.swept >= int64(sweepEvery) {
		_, err = t.authority.Publish(t.life, t.member.Bundle())
		if err = errors.Join(err, t.authority.Keep(t.life, t.dir), t.authority.Sweep(t.life)); err == nil {
			t.swept = now
		}
	}
	return errors.Join(err, t.rotate())
}

// rotate takes a rotation of the gossip's key to its next stage, once all nodes have the keys of this one.
func (t *trusting) rotate() error {
	b, now := t.member.Bundle(), t.clock.Now()
	if len(b.Keys) < 2 {
		return nil
	}
	if t.since == 0 || b.Stage != t.stage {
		t.stage, t.since = b.Stage, now
	}
	behind, err := t.behind(t.life, b.Number, gossips)
	if err != nil || len(behind) > 0 && now-t.since < int64(stagePatience) {
		return err
	}
	if len(behind) > 0 {
		t.cfg.Logger.Warn("the gossip's key is rotated without nodes that do not say that they have the keys", "nodes", behind)
	}
	if err := t.authority.StepGossip(t.life, b.Stage, true); err != nil {
		return err
	}
	_, err = t.authority.Publish(t.life, b)
	return err
}

// gossips tells whether nodes of a role have the gossip's keys.
func gossips(r trust.Role) bool { return r != trust.Driver }

func anyRole(trust.Role) bool { return true }

// behind are the nodes of some roles that do not follow a trust bundle yet, nor a later one.
func (w *wired) behind(ctx context.Context, number uint64, of func(trust.Role) bool) (out []ids.Home, err error) {
	rows, err := w.control.nodes(ctx)
	for _, n := range rows {
		if !n.Dead && of(trust.Role(n.Role)) && n.Trust < number {
			out = append(out, n.Home)
		}
	}
	return out, err
}
