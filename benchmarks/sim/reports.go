package main

import (
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/sched"
)

// reportEvery is how often a node looks whether it has something to tell (package internal/node).
const reportEvery = 100 * time.Millisecond

// reports is how nodes tell others what they have free, as production does: directly, by the rules of cluster.Audience and cluster.Reporter.
type reports struct {
	to    []ids.Home // whom a node tells, once each knows which nodes choose
	told  int        // messages since the job began
	bytes int        // of these, with what is around them
}

// messageHead is what a message between nodes has around it, in bytes: numbers and acknowledgements, encryption, TCP and IP.
const messageHead = 110

// meet has every node know all others, and which of them choose nodes, as after a while in which nothing happened; and starts the reports.
func (s *sim) meet() error {
	a, all := cluster.NewAudience(), make([]ids.Home, 0, len(s.nodes))
	for _, n := range s.nodes {
		all = append(all, n.id)
		a.Heard(&cluster.Node{ID: n.id, Chooses: n.core != nil})
	}
	a.Told(&cluster.Node{}, all)
	s.reports.to = append(s.reports.to, a.Of(&cluster.Node{}, all)...)
	for _, n := range s.nodes {
		r := n.load()
		text, err := new(internode.Encoder).Append(nil, &internode.Report{Node: r})
		if err != nil {
			return err
		}
		s.report = max(s.report, len(text)+messageHead)
		for _, o := range s.owners {
			if o.at != n {
				o.at.step(cluster.NodeUp{Node: n.id})
			}
			o.at.step(cluster.NodeReport{Node: r})
		}
		var again func()
		again = func() {
			n.tell()
			s.After(reportEvery, again)
		}
		s.After(time.Duration(s.rnd.Int64N(int64(reportEvery))), again)
	}
	return nil
}

// tell reports what the node has free, if that is due.
func (n *node) tell() {
	s, r := n.s, n.load()
	due := n.reporter.Due(s.Now(), len(s.nodes)-1, s.reports.to, nil)
	for _, to := range due {
		if to != n.id {
			s.reports.told++
			s.reports.bytes += s.report
		}
	}
	for _, o := range s.owners {
		if !slices.Contains(due, o.at.id) {
			continue
		}
		if o.at == n {
			n.step(cluster.NodeReport{Node: r})
		} else {
			s.After(s.cfg.Latency, func() { o.at.step(cluster.NodeReport{Node: r}) })
		}
	}
}

// load is a copy of the node's next report.
func (n *node) load() cluster.Node {
	var l sched.Load
	n.sched.Load(&l)
	return n.reporter.Report(&l, cluster.Alive, cluster.Store{}, n.core != nil).Clone()
}
