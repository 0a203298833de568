package node

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula/internal/state"
	"mobula/internal/testkit"
)

// lines is a log that a test waits for.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// find waits for a line with all of the words.
func (l *lines) find(t *testing.T, words ...string) {
	t.Helper()
	end := time.NewTimer(testkit.Patience())
	defer end.Stop()
	for {
		l.mu.Lock()
		all := l.text.String()
		l.mu.Unlock()
		for line := range strings.Lines(all) {
			if !strings.Contains(line, words[0]) {
				continue
			}
			missing := 0
			for _, w := range words {
				if !strings.Contains(line, w) {
					missing++
				}
			}
			if missing == 0 {
				return
			}
		}
		select {
		case <-l.more:
		case <-end.C:
			t.Fatalf("no line has all of %q in\n%s", words, all)
		}
	}
}

// A get that waits long says in the log which object is missing, who makes it, and what that
// waits for: of a driver in this process and of one at the socket.
func TestAGetThatWaitsLongSaysWhy(t *testing.T) {
	for _, dialled := range []bool{false, true} {
		t.Run(map[bool]string{false: "embedded", true: "dialled"}[dialled], func(t *testing.T) {
			open := shut(t)
			log := &lines{more: make(chan struct{}, 1)}
			logger := slog.New(slog.NewTextHandler(log, nil))
			const soon = 30 * time.Millisecond
			n, c := running(t, Config{CPUs: 1, Logger: logger, WarnAfter: soon}, Telemetry{})
			if dialled {
				d, err := Dial(t.Context(), filepath.Join(n.dir, SocketName), DialConfig{Logger: logger, WarnAfter: soon})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
					defer cancel()
					if err := d.Close(ctx); err != nil {
						t.Error(err)
					}
				})
				submit(t, c, waiting) // of the embedded job: it has the CPU that d's task needs
				until(t, c, state.MethodStatus, nil, func(s state.Status) bool { return s.Tasks["RUNNING"] == 1 })
				c = d.Client
			}
			h := submit(t, c, waiting)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := c.Get(ctx, h)
				done <- err
			}()
			words := []string{"a get waits long", h.ID().String(), "is not there yet: its task " + h.ID().Task.String() + " (state/wait)", "held by the driver of job"}
			if dialled {
				words = append(words, "for 1 CPU (0 of 1 free)")
			} else {
				words = append(words, "runs on embedded worker")
			}
			log.find(t, words...)
			cancel()
			if err := <-done; err == nil {
				t.Error("the get ended with a value that nobody made")
			}
			open()
		})
	}
}

// The line is whole: the details of each part, and what it waits for in turn.
func TestALineExplainsTheWholeChain(t *testing.T) {
	ex := &state.Explanation{ID: "a:0", Kind: "object", Summary: "is restored", Details: []string{"store: pinned by client 3", "2", "3", "4", "5", "6", "7"},
		Next: &state.Explanation{ID: "b", Kind: "task", Summary: "runs"}}
	if got, want := ex.Line(), "object a:0 is restored (store: pinned by client 3; 2; 3; 4; 5; 6); task b runs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
