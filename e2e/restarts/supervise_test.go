package restarts

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// chief is an actor that makes others, which escalate.
type chief struct{}

func (*chief) Hire(ctx context.Context) (mobula.ActorRef[chief], error) {
	return chiefs.Spawn(ctx, mobula.Escalate(), mobula.Isolated(), mobula.MaxRestarts(1))
}

func (*chief) Crash(context.Context) (int, error) {
	return 0, syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

var (
	chiefs     = mobula.RegisterActor0("e2e/chief", func(context.Context) (*chief, error) { return &chief{}, nil })
	chiefCrash = mobula.RegisterMethod0(chiefs, "Crash", (*chief).Crash)
	chiefHire  mobula.Method0[chief, mobula.ActorRef[chief]]
)

func init() { chiefHire = mobula.RegisterMethod0(chiefs, "Hire", (*chief).Hire) }

// restarted waits until an actor is alive after so many restarts.
func restarted(t *testing.T, ctx context.Context, a mobula.ActorRef[chief], n int) {
	t.Helper()
	var last mobula.ActorEvent
	for ev, err := range mobula.Watch(ctx, a) {
		if err != nil {
			t.Fatalf("waiting for restart %d: %v, the last was %+v", n, err, last)
		}
		if last = ev; ev.Phase == mobula.ActorAlive && ev.Restarts >= n {
			break
		}
	}
	if last.Phase != mobula.ActorAlive || last.Restarts != n {
		t.Fatalf("it is %+v, want alive after %d restarts", last, n)
	}
}

// Who is whose parent outlives the call that made the child, and a kill of the node.
func TestAParentIsItsChildsAfterTheNodeWasKilled(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 4, Store: 16 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, ctx = harness.Connect(t, ctx, p)
	parent, err := chiefs.Spawn(ctx, mobula.MaxRestarts(-1))
	if err != nil {
		t.Fatal(err)
	}
	hired := chiefHire.Go(ctx, parent)
	child, err := hired.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	hired.Release()
	p.Kill(t)
	harness.MustLaunch(t, cfg)
	restarted(t, ctx, parent, 1)
	restarted(t, ctx, child, 1)
	chiefCrash.Go(ctx, child)
	restarted(t, ctx, parent, 2)
	for ev, err := range mobula.Watch(ctx, child) {
		if err != nil || ev.Phase == mobula.ActorDead && !errors.Is(ev.Err, mobula.ErrActorDied) {
			t.Errorf("the child: %+v, %v", ev, err)
		}
	}
}
