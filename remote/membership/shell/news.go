package shell

import (
	"sync"

	"mobula/internal/ids"
	"mobula/remote"
	"mobula/remote/membership"
)

// source tells words about one life apart that do not replace each other.
type source uint8

const (
	sourceGossip  source = iota // memberlist has it alive, or has given it up
	sourceGoodbye               // it has said goodbye
	sourceLoad                  // it has told its load
	sourceClash                 // another claims to be it
	sourceLink                  // a connection for messages
	sourceTable                 // its row in the control plane's table
	sourceVerdict               // the control plane's
)

// about is what a word is about. Loads are about homes: only that of the latest life counts.
type about struct {
	source source
	life   remote.Life
}

func aboutLoad(home ids.Home) about { return about{sourceLoad, remote.Life{Home: home}} }

// aboutTold is what a word is about that comes from the control plane or the connections. false: no such word comes from there.
func aboutTold(ev membership.Event) (about, bool) {
	switch ev := ev.(type) {
	case membership.Connected:
		return about{sourceLink, ev.Life}, true
	case membership.Broken:
		return about{sourceLink, ev.Life}, true
	case membership.NobodyListens:
		return about{sourceLink, ev.Life}, true
	case membership.Beat:
		return about{sourceTable, ev.Node.Life}, true
	case membership.Leaving:
		return about{sourceGoodbye, ev.Life}, true
	case membership.Fenced:
		return about{sourceVerdict, ev.Life}, true
	}
	return about{}, false
}

// news passes the latest word about each life on. Whoever adds a word does not wait.
type news struct {
	mu    sync.Mutex
	order []about                    // guarded by mu: in order of their first words
	words map[about]membership.Event // guarded by mu
	ready chan struct{}              // capacity 1: there are words
}

func newNews() *news {
	return &news{words: make(map[about]membership.Event), ready: make(chan struct{}, 1)}
}

// add replaces the word about something.
func (n *news) add(a about, ev membership.Event) {
	n.mu.Lock()
	if _, waits := n.words[a]; !waits {
		n.order = append(n.order, a)
	}
	n.words[a] = ev
	n.mu.Unlock()
	select {
	case n.ready <- struct{}{}:
	default: // it was signalled already
	}
}

// take gives the words that were added since the last call.
func (n *news) take() []membership.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]membership.Event, 0, len(n.order))
	for _, a := range n.order {
		out = append(out, n.words[a])
	}
	n.order = n.order[:0]
	clear(n.words)
	return out
}
