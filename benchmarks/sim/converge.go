package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"mobula/remote/membership/model"
)

// Convergence is how long it takes until all agree on nodes that have ended at once: since then, when the first one has given up the first of them, when half
// of all have that are to, and when the last one has given up the last.
type Convergence struct {
	First, Half, Last time.Duration
	Bytes             float64 // that a node sends a second meanwhile
}

// maxAgree is how long it may take.
const maxAgree = 3 * time.Minute

// converge kills nodes of a cluster whose gossip is the model of memberlist.
func converge(nodes, kills int, seed uint64) (c Convergence, err error) {
	g := model.New(model.Config{Nodes: nodes, Seed: seed, Latency: 200 * time.Microsecond, Meta: 100, Rules: model.LAN()})
	g.Run(int64(5*time.Second), func(model.Change) { err = errors.New("sim: a node was given up that lives") })
	began, before := g.Now(), sent(g, nodes)
	for n := range kills {
		g.Kill(n)
	}
	want, have := kills*(nodes-kills), 0
	for err == nil && have < want {
		if g.Now() > began+int64(maxAgree) {
			return c, fmt.Errorf("sim: %d nodes do not agree on %d dead ones within %v", nodes, kills, maxAgree)
		}
		g.Run(g.Now()+int64(100*time.Millisecond), func(ch model.Change) {
			at := time.Duration(ch.At - began)
			switch have++; {
			case ch.Up || ch.Other >= kills:
				err = errors.New("sim: a node was given up that lives")
			case have == 1:
				c.First = at
			case have == want/2:
				c.Half = at
			case have == want:
				c.Last = at
			}
		})
	}
	c.Bytes = float64(sent(g, nodes)-before) / float64(nodes) / time.Duration(g.Now()-began).Seconds()
	return c, err
}

func sent(g *model.Gossip, nodes int) (all uint64) {
	for n := range nodes {
		_, bytes := g.Sent(n)
		all += bytes
	}
	return all
}

// maxKills bounds the nodes that end in the model of the gossip: each takes as much memory and time as there are nodes.
const maxKills = 100

// printConvergence prints how clusters of some sizes agree on a tenth that ended, by the gossip and by the control plane, and what the two cost.
func printConvergence(out io.Writer, counts []int, seed uint64) error {
	fmt.Fprintln(out, "nodes\tkilled\tgossip: first\thalf\tall\tB/s\tkilled\tcontrol plane: first\tall\tsends B/s\treceives B/s\theartbeat\tleader MB/s\tprocessors\t")
	for _, n := range counts {
		if n <= tableServers+1 {
			continue
		}
		kills := max(1, n/10)
		g, err := converge(n, min(kills, maxKills), seed)
		if err != nil {
			return err
		}
		c, err := tables(n, kills, seed)
		if err != nil {
			return err
		}
		ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
		fmt.Fprintf(out, "%d\t%d\t%v\t%v\t%v\t%.0f\t%d\t%v\t%v\t%.0f\t%.0f\t%v\t%.2f\t%.2f\t\n", n, min(kills, maxKills), ms(g.First), ms(g.Half), ms(g.Last), g.Bytes,
			kills, ms(c.First), ms(c.Last), c.Sent, c.Received, c.Write.Round(10*time.Microsecond), c.Server/1e6, c.Busy)
	}
	return nil
}
