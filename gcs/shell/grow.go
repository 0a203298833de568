package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Times of the care for a set of servers: how often its leader looks, and how long a server may be away before another one takes its place.
const (
	growEvery   = time.Second
	forgetAfter = 10 * time.Minute
)

// clusterCopies is how many copies of each table a cluster keeps, once it has that many servers.
const clusterCopies = 3

// grow cares for the set as long as this server leads it: the tables get more copies as soon as there are servers for them, and a server that is
// away for long is replaced if there is another one for each of its copies.
func (g *GCS) grow() {
	js, err := jetstream.New(g.nc)
	if err != nil {
		return // it was made from the same connection before
	}
	copied, since := false, make(map[string]time.Time) // since when each that is away is
	for ; g.ctx.Err() == nil; sleep(g.ctx, growEvery) {
		set := g.srv.set()
		if !copied && set.current >= clusterCopies && len(set.away) == 0 {
			copied = g.spread(js) == nil // else it is tried again
		}
		maps.DeleteFunc(since, func(peer string, _ time.Time) bool { return !slices.Contains(set.away, peer) })
		for _, peer := range set.away {
			if _, known := since[peer]; !known {
				since[peer] = time.Now()
			}
			if set.current < clusterCopies || time.Since(since[peer]) < time.Duration(g.srv.away.Load()) {
				continue
			}
			if err := g.replace(peer); err != nil && g.cfg.Logger != nil {
				g.cfg.Logger.Warn("a control-plane server that is gone could not be replaced", "server", peer, "err", err)
			}
		}
	}
}

// servers is a set of servers, as its leader sees it.
type servers struct {
	current int      // servers that have all that the set knows
	away    []string // those that are gone
}

// set is empty if this server does not lead.
func (s *Server) set() (set servers) {
	if !s.ns.JetStreamIsLeader() {
		return servers{}
	}
	info, err := s.ns.Jsz(nil)
	if err != nil || info.Meta == nil {
		return servers{}
	}
	set.current = 1
	for _, p := range info.Meta.Replicas {
		switch {
		case p.Offline:
			set.away = append(set.away, p.Peer)
		case p.Current:
			set.current++
		}
	}
	return set
}

// spread has each table keep three copies.
func (g *GCS) spread(js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(g.ctx, opTimeout)
	defer cancel()
	var failed []error
	names := []string{trustBucket}
	for _, b := range shared {
		names = append(names, name(b))
	}
	for _, n := range names {
		s, err := js.Stream(ctx, "KV_"+n)
		if err == nil && s.CachedInfo().Config.Replicas < clusterCopies {
			_, err = js.UpdateKeyValue(ctx, bucket(n, clusterCopies, markerTTL))
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// replace takes a server out of the set. What it had is copied to another one. If it comes back, it joins the set again.
func (g *GCS) replace(peer string) error {
	nc, err := g.srv.connectSystem()
	if err != nil {
		return err
	}
	defer nc.Close()
	ask, err := json.Marshal(server.JSApiMetaServerRemoveRequest{Peer: peer})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(g.ctx, opTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, server.JSApiRemoveServer, ask)
	if err != nil {
		return err
	}
	var answer server.JSApiMetaServerRemoveResponse
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return err
	}
	if !answer.Success {
		return fmt.Errorf("%+v", answer.Error)
	}
	return nil
}
