package node

import (
	"context"
	"crypto/x509"
	"net"
	"strconv"
	"time"

	"mobula/internal/state"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
)

// What is to be mended, after which time.
const (
	oldGossipKey   = 90 * 24 * time.Hour // a key may encrypt some 2^32 packets, and a large cluster sends thousands a second
	rootEndsSoon   = 90 * 24 * time.Hour
	longLivedToken = 7 * 24 * time.Hour
)

// listeners are the node's ports for other nodes.
func (w *wired) listeners() []state.Listening {
	if !w.on() {
		return nil
	}
	const mutual = "TLS 1.3, certificates of the cluster on both sides"
	out := []state.Listening{w.listening("tcp", w.listener.Addr().String(), "messages, objects, and nodes that join",
		mutual+"; who joins shows a token instead, to a server that has proved to be the token's; objects of nodes of this machine go over its loopback in clear")}
	if w.member.Role() != trust.Driver {
		keyed := "AES-256-GCM with the cluster's gossip key"
		out = append(out, w.listening("tcp", w.at.gossip, "membership", keyed), w.listening("udp", w.at.gossip, "membership", keyed))
	}
	if w.serves() && !w.control.elsewhere() {
		out = append(out, w.listening("tcp", w.at.gcs, "tables of the control plane", mutual), w.listening("tcp", w.at.routes, "control-plane servers among themselves", mutual))
	}
	return out
}

// listening is a port that the node was told to have, as the system shows it.
func (w *wired) listening(network, at, what, protection string) state.Listening {
	host, port, err := net.SplitHostPort(at)
	if ip := net.ParseIP(host); err == nil && (ip == nil || ip.IsUnspecified()) {
		if addr, err := net.ResolveTCPAddr("tcp", at); err == nil && addr.IP != nil {
			host = addr.IP.String()
		}
		if host == "" || net.ParseIP(host).IsUnspecified() {
			host = "::"
		}
	}
	return state.Listening{Network: network, Address: net.JoinHostPort(host, port), For: what, Protection: protection, Away: !isLoopback(host)}
}

// security says by what the node proves that it is of its cluster, and what it trusts.
func (w *wired) security(ctx context.Context, out *state.NodeSecurity, weak func(what, mend string)) error {
	if !w.on() {
		return nil
	}
	now, live := w.cfg.Wires.Wall(), w.member.Live()
	has, b := live.Present(), w.member.Bundle()
	out.Cluster, out.Role, out.Bundle, out.Revoked = live.Name().Cluster, string(live.Name().Role), b.Number, len(b.Revoked)
	own := certificate("this node, "+live.Name().String(), has.Chain[0])
	out.Certificates = append(out.Certificates, own)
	switch {
	case now.After(own.Until):
		weak("the node's certificate ended at "+trust.Stamp(own.Until), "see why it is not renewed: the log says which servers do not answer")
	case live.Due() == 0:
		weak("the node's certificate is to be renewed, and was not: it ends at "+trust.Stamp(own.Until), "see that a control-plane server answers")
	}
	for _, r := range has.Roots {
		root := certificate("the cluster's authority, "+trust.Fingerprint(r.Raw), r)
		out.Certificates = append(out.Certificates, root)
		if len(has.Roots) == 1 && root.Until.Sub(now) < rootEndsSoon {
			weak("the cluster's authority ends at "+trust.Stamp(root.Until), "mobula security rotate root")
		}
	}
	if w.lacks() || b.Number == 0 {
		weak("the node has not all that trust bundle "+strconv.FormatUint(b.Number, 10)+" names yet", "ask again in some seconds; if it stays so, the log says why")
	}
	if !w.serves() {
		return nil
	}
	return w.serverSecurity(ctx, now, out, weak)
}

// serverSecurity says what a control-plane server knows for all.
func (w *wired) serverSecurity(ctx context.Context, now time.Time, out *state.NodeSecurity, weak func(what, mend string)) error {
	row, err := w.authority.Gossip(ctx)
	if err != nil {
		return err
	}
	since, roots := row.Since, w.member.Live().Present().Roots
	if since.IsZero() {
		since = roots[0].NotBefore // it came with the cluster
	}
	key := state.SecretKey{For: "the gossip, generation " + strconv.FormatUint(row.Uses, 10), Since: since}
	if row.Rotating() {
		key.State = "generation " + strconv.FormatUint(row.Wanted, 10) + " takes its place"
	}
	out.Keys = append(out.Keys, key)
	if now.Sub(since) > oldGossipKey {
		weak("the gossip's key is from "+trust.Stamp(since), "mobula security rotate gossip")
	}
	tokens, err := w.authority.Tokens(ctx)
	if err != nil {
		return err
	}
	out.Tokens = make(map[string]int)
	for _, t := range tokens {
		if tokenShown(t).State != tokenValid {
			continue
		}
		out.Tokens[string(t.Role)]++
		if t.Expires.Sub(t.Made) > longLivedToken {
			weak("token "+t.ID+" for the role "+string(t.Role)+" counts until "+trust.Stamp(t.Expires), "mobula token revoke "+t.ID)
		}
	}
	behind, err := w.behind(ctx, w.member.Bundle().Number, anyRole)
	for _, home := range behind {
		weak("node "+home.String()+" does not follow the trust bundle that this server follows", "see whether it reaches the control plane, and has this release")
	}
	return err
}

func certificate(of string, c *x509.Certificate) state.Certificate {
	return state.Certificate{For: of, Serial: credentials.SerialOf(c), From: c.NotBefore, Until: c.NotAfter}
}
