package main

import (
	"fmt"
	"slices"
	"time"

	"mobula/gcs/model"
)

// Control is what the control plane's tables cost, and how long it takes until all nodes have been told of others that have ended at once.
type Control struct {
	First, Last    time.Duration // of the verdicts, since the nodes ended
	Sent, Received float64       // by a node, bytes a second
	Write          time.Duration // of a heartbeat, the median
	Server         float64       // bytes a second that the server sends which leads the tables
	Busy           float64       // of its processors
}

const (
	tableServers = 3
	tablesSettle = 5 * time.Second
	tablesLimit  = time.Minute
)

// tables ends nodes of a cluster whose control plane is a model, with no word from their machines.
func tables(nodes, kills int, seed uint64) (c Control, err error) {
	t := model.New(model.Config{Nodes: nodes, Servers: tableServers, Seed: seed, Costs: model.LAN(), Row: model.Row()})
	t.Run(int64(tablesSettle))
	sent, received := traffic(t, nodes)
	server, busy, began := t.ServerSent(0), t.Busy(0), t.Now()
	window := 4 * tablesSettle
	t.Run(began + int64(window))
	nowSent, nowReceived := traffic(t, nodes)
	each := window.Seconds() * float64(nodes-tableServers)
	c.Sent, c.Received = float64(nowSent-sent)/each, float64(nowReceived-received)/each
	c.Server, c.Busy = float64(t.ServerSent(0)-server)/window.Seconds(), (t.Busy(0)-busy).Seconds()/window.Seconds()
	writes := slices.Sorted(slices.Values(t.Writes()))
	c.Write = writes[len(writes)/2]
	if t.Over() > 0 {
		return c, fmt.Errorf("sim: of %d nodes, %d lives were ended that are not over", nodes, t.Over())
	}
	killed := t.Now()
	for n := range kills {
		t.Kill(tableServers + n)
	}
	for t.Over() < kills || !told(t, kills, nodes) {
		if t.Now() > killed+int64(tablesLimit) {
			return c, fmt.Errorf("sim: of %d nodes that ended, %d are over after %v", kills, t.Over(), tablesLimit)
		}
		t.Run(t.Now() + int64(100*time.Millisecond))
	}
	c.First = tablesLimit
	for n := range kills {
		v := t.Verdict(tableServers + n)
		c.First, c.Last = min(c.First, time.Duration(v.First-killed)), max(c.Last, time.Duration(v.Last-killed))
	}
	if t.Over() > kills {
		err = fmt.Errorf("sim: %d lives were ended, and %d nodes had ended", t.Over(), kills)
	}
	return c, err
}

// told tells whether all that live were told of all that have ended.
func told(t *model.Tables, kills, nodes int) bool {
	for n := range kills {
		if t.Verdict(tableServers+n).Told < nodes-kills {
			return false
		}
	}
	return true
}

// traffic is what all nodes that are no servers have sent and were sent.
func traffic(t *model.Tables, nodes int) (sent, received uint64) {
	for n := tableServers; n < nodes; n++ {
		s, r := t.Traffic(n)
		sent, received = sent+s, received+r
	}
	return sent, received
}
