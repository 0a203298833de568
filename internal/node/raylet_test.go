package node

import (
	"context"
	"testing"

	"mobula/internal/testkit"
	"mobula/raylet"
	"mobula/raylet/pool"
	"mobula/raylet/pool/proc"
)

// A worker that was told to exit is not given work by the core that follows a restart: it is about to end.
func TestWhoIsToldToExitIsKnownToTheNextCore(t *testing.T) {
	procs, err := proc.New(proc.Config{Exe: "/bin/sleep", Args: []string{"60"}, Socket: "none", Post: func(pool.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
		defer cancel()
		if err := procs.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	r := &rayletShell{procs: procs, sessions: &sessions{}}
	procs.Start(pool.StartProcess{Worker: 3, Job: 1})
	procs.Registered(3, 40)
	r.do(nil, raylet.SendDrain{Worker: 3, Client: 40})
	if live := procs.Live(); len(live) != 1 || !live[0].Draining {
		t.Errorf("the next core is told %+v", live)
	}
}
