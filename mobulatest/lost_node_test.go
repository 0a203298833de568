package mobulatest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"mobula"
	"mobula/internal/testkit"
)

// stored is how large a value is that lies in the store of the node that made it.
const stored = 256 << 10

// grown notes in a directory that it runs, and gives its argument, longer by a byte.
var grown = mobula.Register2("mobulatest/grown", func(_ context.Context, dir string, b []byte) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(len(b))), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(".")
	return append(b, byte(len(b))), errors.Join(err, f.Close())
})

// putThere puts a value where it runs.
var putThere = mobula.Register0("mobulatest/putThere", func(ctx context.Context) (mobula.Ref[[]byte], error) {
	return mobula.Put(ctx, make([]byte, stored))
})

// A chain of values that lies on a node which is killed is made again from its beginning, each value once, though nobody refers to those before the last. Whoever
// waits gets the value. A put of which the node had the only copy is lost, and whoever wants it is told so.
func TestAChainOfLostValuesIsMadeAgain(t *testing.T) {
	const links = 30
	c := Cluster(t, 3)
	driver := c.Connect(0)
	ctx := limit(t, driver.Context(t.Context()))
	dir, victim := t.TempDir(), c.ID(2)
	last := grown.Go(ctx, mobula.V(dir), mobula.V(make([]byte, stored)), mobula.PreferNode(victim))
	for range links - 1 {
		next := grown.Go(ctx, mobula.V(dir), last, mobula.PreferNode(victim))
		last.Release()
		last = next
	}
	if ready, _, err := mobula.Wait(ctx, []mobula.Ref[[]byte]{last}, 1); err != nil || len(ready) != 1 {
		t.Fatal(ready, err)
	}
	put, err := putThere.Go(ctx, mobula.OnNode(victim)).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stay := t.TempDir()
	waits := stays.Go(ctx, mobula.V(stay), mobula.PreferNode(victim))
	noted(t, stay, victim)
	got := make(chan error, 1)
	go func() {
		_, err := waits.Get(ctx)
		got <- err
	}()
	if n := ran(t, dir); n != links {
		t.Fatalf("%d tasks ran, want %d", n, links)
	}
	c.Kill(2)

	if b, err := last.Get(ctx); err != nil || len(b) != stored+links || int(b[len(b)-1]) != (stored+links-1)%256 {
		t.Errorf("the last value has %d bytes, %v; want %d", len(b), err, stored+links)
	}
	if n := ran(t, dir); n != 2*links {
		t.Errorf("%d tasks ran, want each of %d twice", n, links)
	}
	if _, err := put.Get(ctx); !errors.Is(err, mobula.ErrObjectLost) || !strings.Contains(err.Error(), victim) {
		t.Errorf("the put gives %v; want that it was lost with node %s", err, victim)
	}
	if err := os.WriteFile(filepath.Join(stay, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, "the end of what ran on the node", got); err != nil {
		t.Error(err)
	}
}

// ran counts what tasks have noted in a directory.
func ran(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		n += len(text)
	}
	return n
}

// What an actor has made outlives it, and its node where another one has a copy: whoever has a reference gets it.
func TestAValueOutlivesTheActorThatMadeIt(t *testing.T) {
	c := Cluster(t, 2)
	ctx := limit(t, c.Connect(0).Context(t.Context()))
	made, err := lenders.Spawn(ctx, mobula.OnNode(c.ID(1)))
	if err != nil {
		t.Fatal(err)
	}
	value := fills.Go(ctx, made, mobula.V(stored))
	reads := func(when string) {
		t.Helper()
		if n, err := takesLoan.Go(ctx, value, mobula.OnNode(c.ID(0))).Get(ctx); err != nil || n != stored {
			t.Errorf("%s it has %d bytes, %v", when, n, err)
		}
	}
	if _, err := value.Get(ctx); err != nil {
		t.Fatal(err)
	}
	if err := made.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := lends.Go(ctx, made, mobula.V(1)).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
		t.Fatalf("the actor lives: %v", err)
	}
	reads("when the actor is gone")
	c.Kill(1)
	noted := t.TempDir()
	again := stays.Go(ctx, mobula.V(noted), mobula.PreferNode(c.ID(1))) // when it ends elsewhere, the node's end is known
	if err := os.WriteFile(filepath.Join(noted, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if at, err := again.Get(ctx); err != nil || at != c.ID(0) {
		t.Fatalf("a task ended on node %q, %v", at, err)
	}
	reads("when its node is gone")
}

// keeper keeps a reference.
type keeper struct{ r mobula.Ref[[]byte] }

var (
	keepers = mobula.RegisterActor0("mobulatest/keeper", func(context.Context) (*keeper, error) { return &keeper{}, nil })
	keeps   = mobula.RegisterMethod1(keepers, "Keep", func(k *keeper, _ context.Context, r mobula.Ref[[]byte]) (int, error) {
		k.r = r
		return 0, nil
	})
	kept = mobula.RegisterMethod0(keepers, "Kept", func(k *keeper, ctx context.Context) (int, error) {
		b, err := k.r.Get(ctx)
		return len(b), err
	})
)

// What a worker on another node refers to stays, as long as the node lives: with it what it has borrowed is given back.
func TestWhatALostNodeHadBorrowedIsFreed(t *testing.T) {
	c := Cluster(t, 2)
	driver := c.Connect(0)
	ctx := limit(t, driver.Context(t.Context()))
	k, err := keepers.Spawn(ctx, mobula.OnNode(c.ID(1)))
	if err != nil {
		t.Fatal(err)
	}
	loan, err := mobula.Put(ctx, make([]byte, stored))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keeps.Go(ctx, k, mobula.V(loan)).Get(ctx); err != nil {
		t.Fatal(err)
	}
	loan.Release()
	if n, err := kept.Go(ctx, k).Get(ctx); err != nil || n != stored {
		t.Fatalf("what the actor refers to has %d bytes, %v", n, err)
	}
	objects := func() int {
		s, err := driver.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.Store.Objects
	}
	if n := objects(); n != 1 {
		t.Fatalf("the store has %d objects, want that which the actor refers to", n)
	}
	c.Kill(1)
	testkit.Eventually(t, "the object freed", func() bool { return objects() == 0 })
	if _, err := kept.Go(ctx, k).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
		t.Errorf("a call of the actor gives %v", err)
	}
	runtime.KeepAlive(k)
}
