package node

import (
	"time"

	"mobula/internal/ids"
	"mobula/raylet/internode"
	"mobula/remote/clocks"
)

// clockStep steps the core that compares clocks with news of one node, which it may ask for its time. The links' mu is held.
func (l *links) clockStep(ev clocks.Event, say func(internode.Msg)) {
	if len(l.clocks.Step(l.clock.Now(), ev)) > 0 {
		say(l.askTime())
	}
}

func (l *links) askTime() *internode.AskTime {
	return &internode.AskTime{Node: l.cfg.Name, Sent: l.clock.Now()}
}

// ask asks a node that may be dead for its time. If there is no connection any more it is dialed for that, and a machine that refuses is the best hint there is.
func (l *links) ask(node ids.Home) { l.say(node, l.askTime()) }

// needTime has the clock of a node known before the answer to what is said to it next, or before the next message that follows from what it has said.
func (l *links) needTime(node ids.Home) {
	if l.lives.dead(node) {
		return
	}
	b := l.box(node)
	l.mu.Lock()
	l.clockStep(clocks.Needed{Node: node}, b.Push)
	l.mu.Unlock()
	b.Flush()
}

// compareClocks asks the nodes that this one works with for their time now and then, until the node ends.
func (l *links) compareClocks() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-l.life.Done():
			return
		case <-t.C:
		}
		with := l.worksWith()
		l.mu.Lock()
		asks := l.clocks.Step(l.clock.Now(), clocks.Tick{Needed: with})
		l.mu.Unlock()
		for _, a := range asks {
			l.say(a.Node, l.askTime())
		}
	}
}

// timeAsked answers a node that asks for the time, and notes what it is called.
func (l *links) timeAsked(node ids.Home, m *internode.AskTime) {
	now := l.clock.Now()
	b := l.box(node)
	l.mu.Lock()
	l.names[node] = m.Node
	l.clockStep(clocks.Asked{Node: node, Sent: m.Sent}, b.Push)
	l.mu.Unlock()
	b.Push(&internode.TellTime{Sent: m.Sent, Received: now, Replied: l.clock.Now()})
	b.Flush()
}

func (l *links) timeTold(node ids.Home, m *internode.TellTime) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clockStep(clocks.Told{Node: node, Sent: m.Sent, Received: m.Received, Replied: m.Replied}, nil)
}

// ahead is how far the clock of a node is ahead of this one's.
func (l *links) ahead(node ids.Home) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	by, _ := l.clocks.Ahead(node)
	return by
}

// inOurTime has the times of a message that came from a node be by this node's clock.
func (l *links) inOurTime(node ids.Home, m internode.Msg) { internode.ShiftTimes(m, -l.ahead(node)) }

// called notes what a node is called, as the control plane says.
func (l *links) called(node ids.Home, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[node] = name
}

// nameOf is what a node is called: its home, while it has not said its name.
func (l *links) nameOf(node ids.Home) string {
	if node == l.numbers.Row().Home {
		return l.cfg.Name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if name := l.names[node]; name != "" {
		return name
	}
	return node.String()
}
