package node

import (
	"fmt"
	"log/slog"
	"testing"

	"mobula/actors"
	"mobula/internal/testkit"
)

// Whichever event of a job's life brings the core of jobs down, the next one goes on from what the shell has: the driver is let in, its tasks run, and
// nothing is left of the job in the end.
func TestTheCoreOfJobsCrashesAtAnyEvent(t *testing.T) {
	const events = 14 // of a driver, three executors, the raylet and the owner
	for nth := range events {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			n, _ := running(t, Config{Logger: slog.New(slog.DiscardHandler)}, Telemetry{})
			before := len(n.Components())
			n.sys.Faults.Inject(actors.Fault{Kind: "jobs", Nth: nth + 1, Action: actors.PanicMidStep})
			c, err := n.Attach(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Get(t.Context(), submit(t, c, quick)); err != nil {
				t.Error(err)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
			testkit.Eventually(t, "nothing of the job is in the tree", func() bool { return len(n.Components()) == before })
			testkit.Eventually(t, "the core has crashed", func() bool { return n.Restarts()["jobs"] == 1 })
		})
	}
}
