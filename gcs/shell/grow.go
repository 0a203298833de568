package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Times of the care for a set of servers: how often its leader looks, after how many looks the copies are counted, once there are some, and how long a server
// may be away before another one takes its place.
const (
	growEvery   = time.Second
	countEvery  = 5
	forgetAfter = 10 * time.Minute
)

// fewest is how many servers must be there before one is taken out of the set: with fewer nothing is left to lose.
const fewest = 3

// grow cares for the set as long as this server leads it: the tables get more copies as soon as there are servers for them (replicas), and a server that is
// away for long is replaced if there is another one for each of its copies.
func (g *GCS) grow() {
	js, err := jetstream.New(g.nc)
	if err != nil {
		return // it was made from the same connection before
	}
	copies, since := 0, make(map[string]time.Time) // copies that each table has, 0: not known; since when each server that is away is
	for round := 0; g.ctx.Err() == nil; sleep(g.ctx, growEvery) {
		set := g.srv.set()
		if round++; round%countEvery == 1 || int(g.inStep.Load()) < replicas(set.current) {
			g.inStep.Store(int32(g.count(js)))
		}
		want := 1
		if len(set.away) == 0 {
			want = replicas(set.current)
		}
		if set.current > 0 && (copies == 0 || want > copies) {
			if have, err := g.spread(js, want); err == nil { // else it is tried again
				copies = have
			}
		}
		maps.DeleteFunc(since, func(peer string, _ time.Time) bool { return !slices.Contains(set.away, peer) })
		for _, peer := range set.away {
			if _, known := since[peer]; !known {
				since[peer] = time.Now()
			}
			if copies == 0 || set.current < max(copies, fewest) || time.Since(since[peer]) < time.Duration(g.srv.away.Load()) {
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

// tableStreams are the streams of all tables of a cluster.
func tableStreams() []string {
	out := []string{"KV_" + trustBucket}
	for _, b := range shared {
		out = append(out, stream(b))
	}
	return out
}

// count gives how many copies each table has at least that have all that the others have; 0: not known.
func (g *GCS) count(js jetstream.JetStream) int {
	ctx, cancel := context.WithTimeout(g.ctx, opTimeout)
	defer cancel()
	least := 0
	for _, name := range tableStreams() {
		s, err := js.Stream(ctx, name)
		if err != nil {
			return 0
		}
		copies := 1
		if of := s.CachedInfo().Cluster; of != nil {
			for _, r := range of.Replicas {
				if r.Current && !r.Offline {
					copies++
				}
			}
		}
		if least == 0 || copies < least {
			least = copies
		}
	}
	return least
}

// Copies gives how many copies each table has at least that are in step, on a server of a cluster; 0: not known, or it is none.
func (g *GCS) Copies() int { return int(g.inStep.Load()) }

// spread has each table keep that many copies, or more if it does already, and gives how many each has at least.
func (g *GCS) spread(js jetstream.JetStream, copies int) (have int, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, opTimeout)
	defer cancel()
	var failed []error
	for _, name := range tableStreams() {
		s, err := js.Stream(ctx, name)
		if err == nil {
			has := s.CachedInfo().Config.Replicas
			if has < copies {
				_, err = js.UpdateKeyValue(ctx, bucket(strings.TrimPrefix(name, "KV_"), copies, markerTTL))
				has = copies
			}
			if have == 0 || has < have {
				have = has
			}
		}
		failed = append(failed, err)
	}
	return have, errors.Join(failed...)
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
