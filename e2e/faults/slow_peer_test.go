package faults

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/testkit"
	remoteshell "mobula/remote/shell"
)

// dam is a network on which, while it is shut, nothing goes out of a node: what the node writes waits.
type dam struct {
	remoteshell.Transport

	mu   sync.Mutex
	shut chan struct{} // guarded by mu; not nil: writes wait for its end
}

func (d *dam) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = make(chan struct{})
}

func (d *dam) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.shut)
	d.shut = nil
}

func (d *dam) Dial(ctx context.Context, address string) (remoteshell.Conn, error) {
	return d.behind(d.Transport.Dial(ctx, address))
}

func (d *dam) Accept() (remoteshell.Conn, error) { return d.behind(d.Transport.Accept()) }

func (d *dam) behind(c remoteshell.Conn, err error) (remoteshell.Conn, error) {
	if err != nil {
		return nil, err
	}
	return &dammed{Conn: c, d: d, ended: make(chan struct{})}, nil
}

// dammed is a connection behind a dam.
type dammed struct {
	remoteshell.Conn
	d     *dam
	ended chan struct{}
	once  sync.Once
}

func (c *dammed) Write(b []byte) (int, error) {
	c.d.mu.Lock()
	shut := c.d.shut
	c.d.mu.Unlock()
	if shut != nil {
		select {
		case <-shut:
		case <-c.ended:
		}
	}
	return c.Conn.Write(b)
}

func (c *dammed) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}

// heap is what this process has in use, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// sizeOf gives how many bytes it is given.
var sizeOf = mobula.Register1("e2e/sizeOf", func(_ context.Context, b []byte) (int, error) { return len(b), nil })

// A node that takes nothing for a while, and for which there is far more to do than memory would hold, costs the job's home a bounded amount. When it goes on, all
// of it is done.
func TestFaultAPeerThatDoesNotReadIsBounded(t *testing.T) {
	const each, tasks = 90_000, 4000 // 360 MB of arguments, of a store of 64 MiB
	d := new(dam)
	nodes := harness.StartNodesWith(t, func(i int, cfg *node.Config) {
		if i == 0 {
			d.Transport = cfg.Cluster.Transport
			cfg.Cluster.Transport = d
		}
	}, 1, 4)
	_, c := harness.ConnectTo(t, nodes[0])
	ctx := c.Context(t.Context()) // specs with a deadline stay in memory
	meet(ctx, t, nodes)
	before := heap()
	first := make(chan mobula.Ref[int], 1)
	submitted := make(chan []mobula.Ref[int], 1)
	go func() {
		var refs []mobula.Ref[int]
		for i := range tasks {
			refs = append(refs, sizeOf.Go(ctx, mobula.V(bytes.Repeat([]byte{byte(i)}, each)), mobula.OnNode("2")))
			if i == 50 {
				first <- refs[i]
			}
		}
		submitted <- refs
	}()
	if _, err := testkit.Receive(t, "some are submitted", first).Get(ctx); err != nil { // they are under way
		t.Fatal(err)
	}
	d.close()
	refs := testkit.Receive(t, "all are submitted", submitted)
	testkit.Eventually(t, "the owner has all of them", func() bool {
		all, err := nodes[0].OwnerStats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, s := range all {
			n += s.Tasks
		}
		return n >= tasks
	})
	if more := heap() - before; more > 224<<20 {
		t.Errorf("%d MiB of memory are in use for a node that does not read", more>>20)
	} else {
		t.Logf("%d MiB", more>>20)
	}
	d.open()
	sizes, err := mobula.GetAll(ctx, refs)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range sizes {
		if n != each {
			t.Fatalf("a task was given %d bytes", n)
		}
	}
}
