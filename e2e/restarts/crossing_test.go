package restarts

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// parts is a value with references in it: one to something put, one to a task's result.
type parts struct {
	Put mobula.Ref[[]byte]
	Sum mobula.Ref[float64]
}

func makeParts(ctx context.Context, size int) (parts, error) {
	p, err := mobula.Put(ctx, make([]byte, size))
	if err != nil {
		return parts{}, err
	}
	return parts{p, harness.Add.Go(ctx, mobula.V(float64(size)), mobula.V(1.0))}, nil
}

func (p parts) release() {
	p.Put.Release()
	p.Sum.Release()
}

// read gets what is in it.
func (p parts) read(ctx context.Context) (int, error) {
	b, err := p.Put.Get(ctx)
	if err != nil {
		return 0, fmt.Errorf("what was put: %w", err)
	}
	sum, err := p.Sum.Get(ctx)
	if err != nil {
		return 0, fmt.Errorf("a task's result: %w", err)
	}
	if sum != float64(len(b))+1 {
		return 0, fmt.Errorf("%v for %d bytes", sum, len(b))
	}
	return len(b), nil
}

// giver gives what it makes to its callers, and keeps what they give.
type giver struct{ has parts }

var (
	giverType = mobula.RegisterActor0("e2e/giver", func(context.Context) (*giver, error) { return &giver{}, nil })
	giverGive = mobula.RegisterMethod1(giverType, "Give", func(_ *giver, ctx context.Context, size int) (parts, error) { return makeParts(ctx, size) })
	giverFail = mobula.RegisterMethod1(giverType, "Fail", func(_ *giver, ctx context.Context, size int) (parts, error) { return parts{}, lacks(ctx, size) })
	giverKeep = mobula.RegisterMethod1(giverType, "Keep", func(g *giver, ctx context.Context, p parts) (int, error) { g.has = p; return p.read(ctx) })
	giverRead = mobula.RegisterMethod0(giverType, "Read", func(g *giver, ctx context.Context) (int, error) { return g.has.read(ctx) })
	giverBack = mobula.RegisterMethod0(giverType, "Back", func(g *giver, _ context.Context) (parts, error) { p := g.has; g.has = parts{}; return p, nil })
	giverDrop = mobula.RegisterMethod0(giverType, "Drop", func(g *giver, _ context.Context) (int, error) { g.has.release(); g.has = parts{}; return 0, nil })

	readPut   = mobula.Register1("e2e/read-put", func(_ context.Context, b []byte) (int, error) { return len(b), nil })
	readParts = mobula.Register1("e2e/read-parts", func(ctx context.Context, p parts) (int, error) { return p.read(ctx) })
	passParts = mobula.Register1("e2e/pass-parts", func(_ context.Context, p parts) (parts, error) { return p, nil })
)

func init() {
	// A driver with a detached giver that stays until it is told to go.
	harness.DriverBodies["gives"] = func(ctx context.Context) error {
		a, err := giverType.Spawn(ctx, mobula.Named("e2e", "giver"), mobula.Detached(), mobula.MaxRestarts(-1))
		if err != nil {
			return err
		}
		return a.Ready(ctx)
	}
}

// taken gets what a call gives, of which nothing else is left.
func taken(t *testing.T, ctx context.Context, r mobula.Ref[parts]) parts {
	t.Helper()
	p, err := r.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.Release()
	return p
}

// lull lets everyone tell what was released, and free what nobody needs.
func lull(t *testing.T, ctxs ...context.Context) {
	t.Helper()
	for range 3 {
		runtime.GC()
		for _, ctx := range ctxs {
			if _, err := harness.Add.Go(ctx, mobula.V(1.0), mobula.V(1.0)).Get(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func wantRead(t *testing.T, what string, n int, err error, want int) {
	t.Helper()
	if err != nil || n != want {
		t.Errorf("%s: %d bytes, %v; want %d", what, n, err, want)
	}
}

// What an actor makes in a call that comes from another job lives as long as the caller has it, and the other way round.
func TestReferencesCrossJobs(t *testing.T) {
	smallAndLarge(t, func(t *testing.T, ctx context.Context, c *mobula.Cluster, size int) {
		home := c.Context(ctx)
		a, err := giverType.Spawn(home, mobula.Named("e2e", "giver"))
		if err != nil {
			t.Fatal(err)
		}
		other, err := mobula.Connect(ctx, c.Address(), mobula.ConnectLogger(harness.Quiet()))
		if err != nil {
			t.Fatal(err)
		}
		away := other.Context(ctx)
		givenAway(t, away, home, size)
		keptFrom(t, away, home, size)
		runtime.GC()
		if err := other.Close(ctx); err != nil {
			t.Error(err)
		}
		a.Release()
		empty(t, home, c)
	})
}

// givenAway looks at what an actor of another job has made.
func givenAway(t *testing.T, ctx, home context.Context, size int) {
	t.Helper()
	far, err := mobula.GetActor[giver](ctx, "e2e", "giver")
	if err != nil {
		t.Fatal(err)
	}
	p := taken(t, ctx, giverGive.Go(ctx, far, mobula.V(size)))
	for range 2 {
		lull(t, ctx, home)
		n, err := p.read(ctx)
		wantRead(t, "what a call gave", n, err, size)
	}
	n, err := readPut.Go(ctx, p.Put).Get(ctx)
	wantRead(t, "as an argument", n, err, size)
	n, err = readParts.Go(ctx, mobula.V(p)).Get(ctx)
	wantRead(t, "inside an argument", n, err, size)

	box, err := mobula.Put(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	passed := passParts.Go(ctx, mobula.V(p))
	if _, _, err := mobula.Wait(ctx, []mobula.Ref[parts]{passed}, 1); err != nil {
		t.Fatal(err)
	}
	p.release()
	lull(t, ctx, home)
	p = taken(t, ctx, box)
	n, err = p.read(ctx)
	wantRead(t, "inside what was put", n, err, size)
	p.release()
	p = taken(t, ctx, passed)
	lull(t, ctx, home)
	n, err = p.read(ctx)
	wantRead(t, "inside a result", n, err, size)
	p.release()

	unread := giverGive.Go(ctx, far, mobula.V(size))
	if _, _, err := mobula.Wait(ctx, []mobula.Ref[parts]{unread}, 1); err != nil {
		t.Fatal(err)
	}
	lull(t, ctx, home)
	p = taken(t, ctx, unread)
	n, err = p.read(ctx)
	wantRead(t, "inside a result that was not read at once", n, err, size)
	p.release()

	_, err = giverFail.Go(ctx, far, mobula.V(size)).Get(ctx)
	stillHas(t, ctx, "an error of another job's actor", err, size)
}

// keptFrom looks at what an actor keeps of what its caller, of another job, has made.
func keptFrom(t *testing.T, ctx, home context.Context, size int) {
	t.Helper()
	far, err := mobula.GetActor[giver](ctx, "e2e", "giver")
	if err != nil {
		t.Fatal(err)
	}
	p, err := makeParts(ctx, size)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // again and again: it lets go of what it has as it gets the same
		n, err := giverKeep.Go(ctx, far, mobula.V(p)).Get(ctx)
		wantRead(t, "given to an actor", n, err, size)
	}
	p.release()
	lull(t, ctx, home)
	n, err := giverRead.Go(ctx, far).Get(ctx)
	wantRead(t, "kept by an actor", n, err, size)
	p = taken(t, ctx, giverBack.Go(ctx, far))
	lull(t, ctx, home)
	n, err = p.read(ctx)
	wantRead(t, "given back by an actor", n, err, size)
	n, err = giverKeep.Go(ctx, far, mobula.V(p)).Get(ctx)
	wantRead(t, "given once more", n, err, size)
	p.release()
	if _, err := giverDrop.Go(ctx, far).Get(ctx); err != nil {
		t.Error(err)
	}
}

// What a detached actor makes in a call from another job outlives the driver of the actor's job, and ends with the actor.
func TestReferencesOutliveTheActorsDriver(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 * harness.MiB, StoreDir: harness.TempDir(t)})
	c, ctx := harness.Connect(t, ctx, p)
	d := harness.LaunchDriver(t, p.Address, "gives")
	far, err := mobula.GetActor[giver](ctx, "e2e", "giver")
	if err != nil {
		t.Fatal(err)
	}
	small, large := taken(t, ctx, giverGive.Go(ctx, far, mobula.V(100))), taken(t, ctx, giverGive.Go(ctx, far, mobula.V(harness.MiB)))
	d.Stop(t)
	lull(t, ctx)
	n, err := small.read(ctx)
	wantRead(t, "small, after the driver", n, err, 100)
	n, err = large.read(ctx)
	wantRead(t, "large, after the driver", n, err, harness.MiB)
	later := taken(t, ctx, giverGive.Go(ctx, far, mobula.V(harness.MiB)))
	lull(t, ctx)
	n, err = later.read(ctx)
	wantRead(t, "made after the driver", n, err, harness.MiB)

	unread := taken(t, ctx, giverGive.Go(ctx, far, mobula.V(200)))
	if err := far.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, ctx, "the job is gone with its last actor", func() bool {
		page, err := c.ListJobs(ctx, mobula.Query{})
		return err == nil && page.Total == 1
	})
	if _, err := unread.Put.Get(ctx); !errors.Is(err, mobula.ErrOwnerDied) { // read once the job has gone: a client keeps what it has read
		t.Errorf("what the job had, read after its end: %v", err)
	}
	for _, p := range []parts{small, large, later, unread} {
		p.release()
	}
	empty(t, ctx, c)
}

// References across jobs are known to the node that is killed and started again.
func TestReferencesAcrossJobsOutliveTheNode(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 * harness.MiB, StoreDir: harness.TempDir(t)}
	node := harness.MustLaunch(t, cfg)
	c, ctx := harness.Connect(t, ctx, node)
	d := harness.LaunchDriver(t, node.Address, "gives")
	far, err := mobula.GetActor[giver](ctx, "e2e", "giver")
	if err != nil {
		t.Fatal(err)
	}
	small, large := taken(t, ctx, giverGive.Go(ctx, far, mobula.V(100))), taken(t, ctx, giverGive.Go(ctx, far, mobula.V(harness.MiB)))
	unread := giverGive.Go(ctx, far, mobula.V(harness.MiB))
	failed := giverFail.Go(ctx, far, mobula.V(100))
	if _, _, err := mobula.Wait(ctx, []mobula.Ref[parts]{unread, failed}, 2); err != nil {
		t.Fatal(err)
	}
	d.Stop(t)
	lull(t, ctx)
	node.Kill(t)
	harness.MustLaunch(t, cfg)
	lull(t, ctx)
	n, err := small.read(ctx)
	wantRead(t, "small", n, err, 100)
	n, err = large.read(ctx)
	wantRead(t, "large", n, err, harness.MiB)
	p := taken(t, ctx, unread)
	lull(t, ctx)
	n, err = p.read(ctx)
	wantRead(t, "inside a result", n, err, harness.MiB)
	func() { // after it nobody has the error
		_, err := failed.Get(ctx)
		failed.Release()
		stillHas(t, ctx, "an error", err, 100)
	}()
	for _, p := range []parts{small, large, p} {
		p.release()
	}
	empty(t, ctx, c)
}
