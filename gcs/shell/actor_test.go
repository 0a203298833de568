package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"mobula/actors"
	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/testkit"
)

func startTest(t *testing.T, dir string) (*actors.System, *GCS) {
	t.Helper()
	sys := actors.NewSystem(actors.Config{})
	g, err := Start(sys, Config{Dir: dir, Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	return sys, g
}

func stopTest(t *testing.T, sys *actors.System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	if err := sys.StopTree(ctx); err != nil {
		t.Error(err)
	}
}

// Panics in the middle of steps and a restart of the whole component lose no claim and
// leave no request without its answer.
func TestPanicsAndRestartLoseNothing(t *testing.T) {
	dir := t.TempDir()
	sys, g := startTest(t, dir)
	for _, kind := range []string{"gcs.Request", "gcs.Answered", "gcs.Changed"} {
		sys.Faults.Inject(actors.Fault{Kind: "gcs", MessageType: kind, Nth: 5, Action: actors.PanicMidStep})
	}
	ctx := testkit.Within(t)
	const n = 20
	for i := range n {
		if _, err := g.Call(ctx, gcs.Claim{Actor: actor(fmt.Sprint("a", i), fmt.Sprint(i))}); err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
	}
	if got := sys.Restarts()["gcs"]; got != 3 {
		t.Errorf("%d restarts counted, 3 panics injected", got)
	}
	stopTest(t, sys)
	if _, err := g.Call(ctx, gcs.List{Bucket: gcs.Actors}); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("a call after the stop: %v", err)
	}

	sys, g = startTest(t, dir)
	defer stopTest(t, sys)
	rows, err := g.Call(ctx, gcs.List{Bucket: gcs.Actors})
	if err != nil || len(rows) != n {
		t.Fatalf("after a restart: %d rows, %v", len(rows), err)
	}
	if _, err := g.Call(ctx, gcs.Claim{Actor: actor("a7", "another")}); !errors.Is(err, errs.ErrNameTaken) {
		t.Errorf("a name of before the restart: %v", err)
	}
}

func TestServiceAnswersOverNATS(t *testing.T) {
	sys, g := startTest(t, t.TempDir())
	defer stopTest(t, sys)
	ctx := testkit.Within(t)
	if _, err := g.Call(ctx, gcs.Put{Record: homeRecord(3)}); err != nil {
		t.Fatal(err)
	}
	nc, err := g.srv.Connect("asker")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	msg, err := nc.RequestWithContext(ctx, "mobula.gcs.homes.get", []byte("3"))
	if err != nil {
		t.Fatal(err)
	}
	var got []gcs.HomeRecord
	if err := json.Unmarshal(msg.Data, &got); err != nil || len(got) != 1 || got[0] != homeRecord(3) {
		t.Errorf("answer %q: %v", msg.Data, err)
	}
	msg, err = nc.RequestWithContext(ctx, "mobula.gcs.homes.get", []byte("4"))
	if err != nil || msg.Header.Get("Nats-Service-Error") == "" {
		t.Errorf("a row that is not there: %v, header %v", err, msg.Header)
	}
}

// More requests at once than the mailbox takes end all the same: the core does not wait for the server,
// whose answers wait for room in its mailbox.
func TestManyRequestsAtOnce(t *testing.T) {
	sys, g := startTest(t, t.TempDir())
	defer stopTest(t, sys)
	ctx := testkit.Within(t)
	const n = 40000
	answers := make(chan gcs.Reply, n)
	for range n {
		g.Ask(gcs.Lookup{Bucket: gcs.Actors, Key: "nobody"}, func(r gcs.Reply) { answers <- r })
	}
	for i := range n {
		select {
		case <-answers:
		case <-ctx.Done():
			t.Fatalf("%d of %d requests are answered", i, n)
		}
	}
}
