package actors

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// protoactor speaks through our logger, one level down; the kit reports restarts itself.
func TestLogger(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		out := &lockedBuffer{}
		s := NewSystem(Config{Logger: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))})
		r := spawn(t, s, scriptSpec("a", newRecording()))
		post(t, r, ev{id: 1, crash: 1})
		barrier(t, r)
		stopTree(t, s)
		text := out.String()
		if !strings.Contains(text, "component restarted") || !strings.Contains(text, "component=root/a") || !strings.Contains(text, "(*core).Step") {
			t.Errorf("level %s: restart not logged:\n%s", level, text)
		}
		if strings.Contains(text, "lib=protoactor") != (level == slog.LevelDebug) {
			t.Errorf("level %s: protoactor's own records:\n%s", level, text)
		}
	}
}

// What NewSystem takes from the registry is not missed.
func TestShrunkRegistryStillResolves(t *testing.T) {
	s := system(t, Config{})
	if n := len(s.as.ProcessRegistry.LocalPIDs.LocalPIDs); n != 1 {
		t.Errorf("%d buckets", n)
	}
	for _, id := range []string{"deadletter", "eventstream", "root"} {
		if _, ok := s.as.ProcessRegistry.GetLocal(id); !ok {
			t.Errorf("process %s is lost", id)
		}
	}
	got := make(chan any, 1)
	sub := s.as.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok {
			got <- d.Message
		}
	})
	defer s.as.EventStream.Unsubscribe(sub)
	s.as.Root.Send(s.as.NewLocalPID("nobody"), "lost")
	if m := <-got; m != "lost" {
		t.Errorf("dead letter %v", m)
	}
}

// Each component is protoactor's: registered under its path, with its parent's PID.
func TestComponentsAreProtoactorActors(t *testing.T) {
	s := system(t, Config{})
	sup, err := Supervisor(s, "sup", "sup", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	r := spawn(t, sup, scriptSpec("a", newRecording()))
	p, ok := s.as.ProcessRegistry.GetLocal("root/sup/a")
	if _, is := p.(*actor.ActorProcess); !ok || !is {
		t.Fatalf("registered as %T", p)
	}
	if r.Kind() != "script" || r.Name() != "a" {
		t.Errorf("ref says %s %s", r.Kind(), r.Name())
	}
}

func TestOnEventMayPanicAndAskTheTree(t *testing.T) {
	var s *System
	var mu sync.Mutex
	calls := 0
	s = NewSystem(Config{OnEvent: func(Event) {
		mu.Lock()
		defer mu.Unlock()
		if s != nil {
			s.Tree()
		}
		calls++
		panic("a hook's panic harms nobody")
	}})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	post(t, r, ev{id: 1, crash: 1})
	barrier(t, r)
	stopTree(t, s)
	if calls < 4 || len(rec.cores) != 2 {
		t.Errorf("%d events, %d cores", calls, len(rec.cores))
	}
}
