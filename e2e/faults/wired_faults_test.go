package faults

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/node"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/objectstore/spill/storage"
)

// refused starts a node that must not start, and checks what is said.
func refused(t *testing.T, cfg node.Config, want error, says ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	n, err := node.Start(ctx, cfg)
	if err == nil {
		harness.StopNode(t, n)
	}
	if !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

// Each of a node's four ports that somebody else has is named, with the setting for another one, before anything is founded.
func TestPortsThatAreTaken(t *testing.T) {
	for _, c := range []struct {
		network, setting string
		port             func(w *node.Wires) int
	}{
		{"tcp", "--listen", func(w *node.Wires) int { _, p, _ := net.SplitHostPort(w.Listen); n, _ := strconv.Atoi(p); return n }},
		{"tcp", "--gossip-port", func(w *node.Wires) int { return w.GossipPort }},
		{"udp", "--gossip-port", func(w *node.Wires) int { return w.GossipPort }},
		{"tcp", "--gcs-port", func(w *node.Wires) int { return w.GCSPort }},
		{"tcp", "--routes-port", func(w *node.Wires) int { return w.RoutesPort }},
	} {
		t.Run(c.setting+" "+c.network, func(t *testing.T) {
			cfg := harness.WiredConfig(t, "n1")
			address := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port(cfg.Wires)))
			if c.network == "udp" {
				l, err := net.ListenPacket("udp", address)
				harness.Must(t, err)
				defer l.Close()
			} else {
				l, err := net.Listen("tcp", address)
				harness.Must(t, err)
				defer l.Close()
			}
			refused(t, cfg, errs.ErrInvalid, address, "in use", c.setting)
			if _, err := os.Stat(filepath.Join(cfg.Dir, "cluster.secret")); err == nil {
				t.Error("it has begun to found a cluster")
			}
		})
	}
}

// A node that joins may say which cluster it means. If its token is of another one both are named, and the node has not joined: it may try again.
func TestAClusterOfAnotherName(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	cfg := harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data)
	cfg.Wires.Cluster = "other"
	refused(t, cfg, trust.ErrCluster, `"other"`, `"test"`)
	cfg.Wires.Cluster = "test"
	harness.StartWired(t, cfg)
}

// Nodes may have one name, as those of two containers have with the same host name and process: their ids tell them apart.
func TestNodesOfOneName(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "same"))
	nodes := []*node.Node{first, harness.StartWired(t, harness.JoinTo(t, first, harness.WiredConfig(t, "same"), trust.Data)), harness.StartWired(t, harness.JoinTo(t, first, harness.WiredConfig(t, "same"), trust.Data))}
	ctx, _ := harness.ConnectTo(t, nodes[1])
	for _, n := range nodes {
		if at, err := onNode.Go(ctx, mobula.V(0), mobula.OnNode(n.ID())).Get(ctx); err != nil || at != n.ID() {
			t.Errorf("a task for node %s ran on %q, %v", n.ID(), at, err)
		}
	}
}

// A task for a node that has just joined runs there, whichever node is asked: before that has heard of it, it waits.
func TestATaskForANodeThatHasJustJoined(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	second := harness.StartWired(t, harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data))
	ctx, _ := harness.ConnectTo(t, second)
	for _, name := range []string{"n3", "n4"} {
		n := harness.StartWired(t, harness.JoinTo(t, first, harness.WiredConfig(t, name), trust.Data))
		if at, err := onNode.Go(ctx, mobula.V(0), mobula.OnNode(n.ID())).Get(ctx); err != nil || at != n.ID() {
			t.Errorf("a task for node %s ran on %q, %v", n.ID(), at, err)
		}
	}
}

// A copied directory is refused, also by who says that it was moved: its node has begun another life elsewhere. That goes on.
func TestACopiedDirectoryOfANodeOfACluster(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	cfg := harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data)
	second := harness.StartWired(t, cfg)
	harness.StopNode(t, second)
	cfg.Wires.Join, cfg.Wires.Token, cfg.Wires.Role = nil, "", ""
	copied := harness.WiredConfig(t, "n2")
	harness.Must(t, os.MkdirAll(copied.Dir, 0o700))
	harness.Must(t, os.CopyFS(copied.Dir, os.DirFS(cfg.Dir)))
	second = harness.StartWired(t, cfg)
	refused(t, copied, register.ErrCopied, copied.Dir, "--moved")
	copied.Moved, copied.StoreDir = true, harness.TempDir(t) // as on another machine
	refused(t, copied, register.ErrCopied, "went on elsewhere")
	ctx, _ := harness.ConnectTo(t, first)
	if at, err := onNode.Go(ctx, mobula.V(0), mobula.OnNode(second.ID())).Get(ctx); err != nil || at != second.ID() {
		t.Errorf("the original has run nothing: %q, %v", at, err)
	}
}

// A start in a copied directory that says that it was moved, and fails, leaves the node alone that it was copied from: that runs on in its life.
func TestATakeOverThatFailsHarmsNobody(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	cfg := harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data)
	shared := harness.TempDir(t)
	cfg.SpillURLs = []string{shared}
	second := harness.StartWired(t, cfg)
	copied := harness.WiredConfig(t, "n2")
	copyFiles(t, copied.Dir, cfg.Dir)
	copied.Moved = true
	refused(t, copied, errs.ErrNodeRunning, "a node that runs") // its objects are in this machine's memory
	copied.StoreDir = filepath.Join(copied.Dir, "none")
	refused(t, copied, errs.ErrSegmentUnavailable, copied.StoreDir)
	copied.StoreDir, copied.SpillURLs = harness.TempDir(t), []string{shared}
	refused(t, copied, storage.ErrInUse, shared)

	ctx, _ := harness.ConnectTo(t, second)
	a, err := harness.CounterType.Spawn(ctx, mobula.V(1), mobula.Named("", "goes-on"), mobula.Resources{CPU: 0}) // which a life that is over may not
	harness.Must(t, err)
	if got, err := harness.CounterInc.Go(ctx, a, mobula.V(1)).Get(ctx); err != nil || got != 2 {
		t.Errorf("an actor of the original: %d, %v", got, err)
	}
	select {
	case <-second.StopRequested():
		t.Error("the original ends")
	default:
	}
}

// A directory that was copied while its node ran takes over when it says that it was moved: the node's next life is there, and the life before ends by itself.
func TestACopyThatWasMovedTakesOver(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	cfg := harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data)
	second := harness.StartWired(t, cfg)
	ended := second.StopRequested()
	copied := harness.WiredConfig(t, "n2")
	copyFiles(t, copied.Dir, cfg.Dir)
	copied.Moved, copied.StoreDir = true, harness.TempDir(t) // as on another machine
	third := harness.StartWired(t, copied)
	select {
	case <-ended:
	case <-time.After(testkit.Patience()):
		t.Fatal("the life before does not end")
	}
	if third.ID() != second.ID() {
		t.Errorf("the copy is node %s, and was %s", third.ID(), second.ID())
	}
	ctx, _ := harness.ConnectTo(t, first)
	if at, err := harness.Where.Go(ctx, mobula.V(0), mobula.OnNode(third.ID())).Get(ctx); err != nil || at != third.Address() {
		t.Errorf("a task ran at %q, %v, want %q", at, err, third.Address())
	}
}

// A copy from which the node's identity was removed is another node: with a token it joins beside the one that it was copied from.
func TestACopyWithoutAnIdentityJoinsByToken(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	cfg := harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data)
	second := harness.StartWired(t, cfg)
	copied := harness.WiredConfig(t, "n3")
	copyFiles(t, copied.Dir, cfg.Dir)
	for _, name := range []string{"identity", "home"} {
		harness.Must(t, os.Remove(filepath.Join(copied.Dir, name)))
	}
	refused(t, copied, trust.ErrNode, "join with a token")
	third := harness.StartWired(t, harness.JoinTo(t, first, copied, trust.Data))
	if third.ID() == second.ID() {
		t.Errorf("the copy is node %s, too", third.ID())
	}
	ctx, _ := harness.ConnectTo(t, first)
	for _, n := range []*node.Node{second, third} {
		if at, err := onNode.Go(ctx, mobula.V(0), mobula.OnNode(n.ID())).Get(ctx); err != nil || at != n.ID() {
			t.Errorf("a task for node %s ran on %q, %v", n.ID(), at, err)
		}
	}
}

// copyFiles copies a directory, but for what is no file, such as sockets.
func copyFiles(t *testing.T, to, from string) {
	t.Helper()
	harness.Must(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(at, data, 0o600)
	}))
}

// Who joins by the address of something that accepts and says nothing, or does not speak TLS, is told so, with the address; the next address is tried.
func TestAServerOfJoinsThatIsNone(t *testing.T) {
	first := harness.StartWired(t, harness.WiredConfig(t, "n1"))
	for name, answer := range map[string]string{"silent": "", "plain text": "HTTP/1.1 400 Bad Request\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			harness.Must(t, err)
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close() // with the listener
					_, _ = c.Write([]byte(answer))
				}
			}()
			cfg := harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data)
			cfg.Wires.Join = []string{l.Addr().String()}
			refused(t, cfg, errs.ErrNoNode, l.Addr().String())
			cfg.Wires.Join = append(cfg.Wires.Join, first.ClusterAddress())
			harness.StartWired(t, cfg)
		})
	}
}

// Who joins at a data node, or at another one of a server's ports, is told what is there.
func TestAJoinAtTheWrongNodeOrPort(t *testing.T) {
	cfg := harness.WiredConfig(t, "n1")
	first := harness.StartWired(t, cfg)
	second := harness.StartWired(t, harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data))
	for at, says := range map[string]string{
		second.ClusterAddress(): "no control-plane server",
		net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Wires.GossipPort)): "not the port of its --listen",
		net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Wires.GCSPort)):    "has this port for something else",
		net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Wires.RoutesPort)): "has this port for something else",
	} {
		joins := harness.JoinTo(t, first, harness.WiredConfig(t, "n3"), trust.Data)
		joins.Wires.Join = []string{at}
		refused(t, joins, errs.ErrNoNode, at, says)
	}
}

// Two nodes of a cluster spill to one directory at once, and each reads back what is its own.
func TestNodesShareASpillTarget(t *testing.T) {
	shared := harness.TempDir(t)
	change := func(cfg node.Config) node.Config {
		cfg.StoreBytes, cfg.SpillURLs = 16<<20, []string{shared}
		return cfg
	}
	first := harness.StartWired(t, change(harness.WiredConfig(t, "n1")))
	nodes := []*node.Node{first, harness.StartWired(t, change(harness.JoinTo(t, first, harness.WiredConfig(t, "n2"), trust.Data)))}
	const each, size = 10, 4 << 20
	held := make([][]mobula.Ref[[]byte], len(nodes))
	var ctxs []context.Context
	for range nodes {
		ctx, _ := harness.ConnectTo(t, nodes[len(ctxs)])
		ctxs = append(ctxs, ctx)
	}
	for i := range each {
		for k, ctx := range ctxs {
			r, err := mobula.Put(ctx, bytes.Repeat([]byte{byte(10*k + i)}, size))
			harness.Must(t, err)
			held[k] = append(held[k], r)
		}
	}
	if len(harness.SpillFiles(t, shared)) == 0 {
		t.Fatal("nothing was spilled")
	}
	for k, ctx := range ctxs {
		for i, r := range held[k] {
			if b, err := r.Get(ctx); err != nil || len(b) != size || slices.ContainsFunc(b, func(x byte) bool { return x != byte(10*k+i) }) {
				t.Errorf("object %d of node %d: %d bytes, %v", i, k, len(b), err)
			}
		}
	}
}

// A driver whose own node is lost is told at once; drivers of other nodes go on.
func TestADriversOwnNodeIsLost(t *testing.T) {
	nodes := startCluster(t, 3)
	gone, _ := harness.ConnectTo(t, nodes[1])
	ctx, _ := harness.ConnectTo(t, nodes[2])
	harness.RanOn(ctx, t, nodes)
	waits := harness.Where.Go(gone, mobula.V(600_000), mobula.OnNode(nodes[2].ID()))
	end, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	harness.Must(t, nodes[1].Kill(end))
	harness.Must(t, os.RemoveAll(filepath.Dir(nodes[1].Address()))) // nobody starts it again: else its driver waits for that
	began := time.Now()
	if _, err := waits.Get(gone); !errors.Is(err, mobula.ErrOwnerDied) {
		t.Errorf("a task of the lost node's job: %v", err)
	}
	if _, err := harness.Where.Go(gone, mobula.V(0)).Get(gone); !errors.Is(err, mobula.ErrOwnerDied) {
		t.Errorf("a task that is submitted later: %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("its driver was told after %v", took)
	}
	harness.RanOn(ctx, t, []*node.Node{nodes[0], nodes[2]})
}
