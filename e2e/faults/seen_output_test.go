package faults

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/testkit"
)

// written keeps what a node passes on.
type written struct {
	mu   sync.Mutex
	b    bytes.Buffer  // guarded by mu
	more chan struct{} // a token: there is more
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// await waits for a text.
func (w *written) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(testkit.Patience())
	for !strings.Contains(w.String(), text) {
		select {
		case <-w.more:
		case <-late:
			t.Fatalf("%q did not come; this did:\n%s", text, w.String())
		}
	}
}

// What workers of a job write on any node comes to its home, if that passes it on, with the node's name; and to no other.
func TestOutputComesHome(t *testing.T) {
	out := []*written{{more: make(chan struct{}, 1)}, {more: make(chan struct{}, 1)}}
	nodes := harness.StartNodesWith(t, func(i int, cfg *node.Config) { cfg.WorkerOutput = out[i] }, 1, 2)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	spread(t, ctx, saidThere, nodes...)
	out[0].await(t, "this is written on "+nodes[0].Address())
	out[0].await(t, "this is written on "+nodes[1].Address())
	for line := range strings.Lines(out[0].String()) {
		here := strings.HasPrefix(line, "(worker/1-") && strings.HasSuffix(line, nodes[0].Address()+"\n")
		there := strings.HasPrefix(line, "(n2) (worker/2-") && strings.HasSuffix(line, nodes[1].Address()+"\n")
		if !here && !there {
			t.Errorf("the home passes on %q", line)
		}
	}
	if said := out[1].String(); said != "" {
		t.Errorf("the other node passes on %q", said)
	}
}
