package node

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"testing"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/node/jobs"
	"mobula/internal/testkit"
	"mobula/wire"
	"mobula/wire/conn"
)

// A driver whose job, or whose coming, no core of jobs survives is told so, and nothing is left of it.
func TestADriverThatNoCoreSurvives(t *testing.T) {
	for _, kind := range []string{"jobs.Began", "jobs.Join"} {
		t.Run(kind, func(t *testing.T) {
			n, _ := running(t, Config{Logger: slog.New(slog.DiscardHandler)}, Telemetry{})
			before, logs := len(n.Components()), len(n.files.Logged())
			n.sys.Faults.Inject(actors.Fault{Kind: "jobs", MessageType: kind, Times: 2, Action: actors.PanicMidStep})
			if _, err := n.Attach(t.Context(), ""); !errors.Is(err, errs.ErrPanic) {
				t.Errorf("the driver is told %v", err)
			}
			testkit.Eventually(t, "nothing of the job is in the tree", func() bool { return len(n.Components()) == before })
			testkit.Eventually(t, "nor on disk", func() bool { return len(n.files.Logged()) == logs })
			c, err := n.Attach(t.Context(), "")
			if err != nil {
				t.Fatalf("another driver: %v", err)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The word that lets a worker in brings a core of jobs down behind its first effects, and then the next: the worker is turned away, and nothing is left of its session.
func TestAWorkerThatWasLetInAndThenNot(t *testing.T) {
	n, c := running(t, Config{Logger: slog.New(slog.DiscardHandler)}, Telemetry{})
	job := c.Root().Task.Job()
	before := len(n.Components())
	n.sys.Faults.Inject(actors.Fault{Kind: "scheduler", MessageType: "pool.Registered", Action: actors.Drop}) // the pool is not asked
	refused := make(chan error, 1)
	go func() {
		_, err := n.door.welcomeWorker(&wire.Hello{Role: wire.RoleWorker, Job: job}, conn.Peer{PID: int32(os.Getpid())})
		refused <- err
	}()
	var ask jobs.Ask
	testkit.Eventually(t, "the worker waits", func() bool {
		n.jobs.asks.mu.Lock()
		defer n.jobs.asks.mu.Unlock()
		for _, a := range slices.Sorted(maps.Keys(n.jobs.asks.open)) {
			ask = a
		}
		return ask != 0
	})
	s := n.jobs.asks.session(ask)
	n.jobs.letIn(n.jobs.ref, jobs.LetIn{Ask: ask, Client: s.id, Job: job})
	n.sys.Faults.Inject(actors.Fault{Kind: "jobs", Action: actors.PanicMidStep})
	n.jobs.ref.Deliver(jobs.Guest{Client: s.id, Job: job})
	testkit.Eventually(t, "the next core is there", func() bool { return n.Restarts()["jobs"] == 1 })
	n.jobs.asks.end(ask, errs.New(errs.CodeComponentFailed, "two cores panicked"))
	if err := <-refused; !errors.Is(err, errs.ErrComponentFailed) {
		t.Errorf("the worker is told %v", err)
	}
	testkit.Eventually(t, "nothing of its session is left", func() bool {
		return n.sessions.get(s.id) == nil && n.jobs.member(s.id) == nil && len(n.Components()) == before
	})
}
