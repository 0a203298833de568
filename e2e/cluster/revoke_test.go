package cluster

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/netns/nodes"
)

// shutOut is how long it may take until nobody has a connection with a node that was revoked, and its work runs elsewhere.
const shutOut = 10 * time.Second

// A node that is revoked while tasks run is cut off everywhere within seconds; its work runs elsewhere, it ends, and it does not come back with what it has. The
// others go on. With a token it gets in again.
func TestStressARevokedNodeIsShutOut(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	c := start(t, network(t, 3))
	ctx, _ = connect(t, ctx, c)
	first, victim, third := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
	id, other := idOf(t, ctx, victim), idOf(t, ctx, third)
	dir, lost := running(t, ctx, id)
	stays, kept := running(t, ctx, other)
	stop, load := loadOn(t, ctx, other)

	meets := func() bool { // one of the others has a connection with the victim
		return slices.Contains(slices.Concat(connections(t, first), connections(t, third)), victim.Host.Addr.String())
	}
	if !meets() {
		t.Fatal("nobody has a connection with the node that is to be revoked")
	}
	begun := time.Now()
	var revoked struct {
		Node, Home string
		Bundle     uint64
	}
	must(t, first.Ask(ctx, &revoked, "security", "revoke", victim.Name, "--why", "a test"))
	if revoked.Node != victim.Name || revoked.Home != id || revoked.Bundle == 0 {
		t.Errorf("revoked was %+v, want node %s, home %s", revoked, victim.Name, id)
	}
	harness.Eventually(t, ctx, "the task runs again", func() bool { return len(attempts(t, dir)) > 1 })
	harness.Eventually(t, ctx, "nobody has a connection with it", func() bool { return !meets() })
	holds(t, "to shut it out", time.Since(begun), shutOut)
	if at := letGo(t, ctx, dir, lost); at == id {
		t.Errorf("the task ended on the node that was revoked")
	}
	stop()
	if err := load(); err != nil {
		t.Errorf("tasks on another node: %v", err)
	}
	if at := letGo(t, ctx, stays, kept); at != other || len(attempts(t, stays)) != 1 {
		t.Errorf("a task on another node ran as %v", attempts(t, stays))
	}
	must(t, victim.Wait(ctx)) // it ends by itself, in order

	if _, err := c.Return(ctx, victim); err == nil || !strings.Contains(err.Error(), "revoked") || !strings.Contains(err.Error(), "a test") {
		t.Errorf("it comes back with its old certificate: %v", err)
	}
	token, err := c.Token(ctx, "data")
	must(t, err)
	back, err := c.Return(ctx, victim, "--join", c.Address(), "--token", token)
	must(t, err)
	harness.Eventually(t, ctx, "it works again", func() bool {
		at, err := here.Go(ctx, mobula.OnNode(idOf(t, ctx, back))).Get(ctx)
		return err == nil && at == idOf(t, ctx, back)
	})
}

// Who cannot be revoked, and by whom nobody can, is said.
func TestWhatIsNotRevoked(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	c := start(t, network(t, 2))
	first, second := c.Nodes()[0], c.Nodes()[1]
	for _, x := range []struct {
		asked *nodes.Node
		who   string
		want  string
	}{
		{first, first.Name, "ask another control-plane server"}, {first, "nobody", "no node"}, {second, first.Name, "a matter of control-plane servers"},
	} {
		if out, err := x.asked.Run(ctx, "security", "revoke", x.who); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("to revoke %s: %s, %v; want %q", x.who, out, err, x.want)
		}
	}
}

// loadOn runs short tasks on a node until stop is called; the first error is what load gives then.
func loadOn(t *testing.T, ctx context.Context, on string) (stop func(), load func() error) { //nolint:revive // t comes first
	t.Helper()
	life, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for life.Err() == nil {
			if _, err := here.Go(ctx, mobula.OnNode(on)).Get(ctx); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	t.Cleanup(stop)
	return stop, func() error { return <-ended }
}

// connections are the hosts to which TCP connections of a node's host lead, by /proc/net.
func connections(t *testing.T, n *nodes.Node) (out []string) {
	t.Helper()
	for _, file := range []string{"tcp", "tcp6"} {
		var text []byte
		err := n.Host.Do(func() (err error) {
			text, err = os.ReadFile("/proc/thread-self/net/" + file)
			return err
		})
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		must(t, err)
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			const remote, state, established = 2, 3, "01"
			if len(fields) <= state || fields[state] != established {
				continue
			}
			at, err := readAddress(fields[remote])
			must(t, err)
			out = append(out, at.Addr().String())
		}
	}
	return out
}
