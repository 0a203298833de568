package shell

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// op is a call of a storage that a gate can hold or fail.
type op int

const (
	opPut op = iota
	opRead
	opDelete
	opProbe
	ops
)

// gate is a storage in memory whose calls a test holds back or lets fail.
type gate struct {
	url string

	mu       sync.Mutex
	files    map[uint64][]byte
	block    [ops]chan struct{}
	arrived  [ops]chan struct{}
	fail     [ops]func() error
	calls    [ops]int
	capacity spill.Capacity
}

var gates struct {
	sync.Mutex
	last atomic.Int64
	all  map[string]*gate
}

func init() {
	gates.all = make(map[string]*gate)
	storage.Register("gate", func(_ context.Context, u *url.URL, _ storage.Options) (storage.Storage, error) {
		gates.Lock()
		defer gates.Unlock()
		return gates.all[u.Host], nil
	})
}

func newGate(t testing.TB) *gate {
	host := fmt.Sprintf("g%d", gates.last.Add(1))
	g := &gate{url: "gate://" + host, files: make(map[uint64][]byte)}
	gates.Lock()
	gates.all[host] = g
	gates.Unlock()
	t.Cleanup(func() {
		for o := range ops {
			g.open(o)
		}
	})
	return g
}

// hold stops calls from now on; reached waits for the first; open lets all pass.
func (g *gate) hold(o op) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.block[o], g.arrived[o] = make(chan struct{}), make(chan struct{}, 1024)
}

func (g *gate) reached(t testing.TB, o op) {
	t.Helper()
	g.mu.Lock()
	c := g.arrived[o]
	g.mu.Unlock()
	testkit.Receive(t, "a call that is held", c)
}

func (g *gate) open(o op) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.block[o] != nil {
		close(g.block[o])
		g.block[o] = nil
	}
}

func (g *gate) failing(o op, f func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail[o] = f
}

func (g *gate) count(o op) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[o]
}

func (g *gate) setCapacity(c spill.Capacity) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.capacity = c
}

func (g *gate) enter(o op) error {
	g.mu.Lock()
	g.calls[o]++
	block, arrived, fail := g.block[o], g.arrived[o], g.fail[o]
	g.mu.Unlock()
	if block != nil {
		arrived <- struct{}{}
		<-block
	}
	if fail != nil {
		return fail()
	}
	return nil
}

func (g *gate) Put(_ context.Context, file uint64, s *format.Stream) error {
	if err := g.enter(opPut); err != nil {
		return err
	}
	var all []byte
	for b := s.Next(); b != nil; b = s.Next() {
		for _, p := range b.Pieces {
			all = append(all, p...)
		}
		b.Free()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.files[file] = all
	return nil
}

func (g *gate) Read(_ context.Context, file, off uint64, dst []byte) (uint32, error) {
	if err := g.enter(opRead); err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all, ok := g.files[file]
	if !ok {
		return 0, spill.ErrMissing
	}
	copy(dst, all[off:])
	return format.Checksum(dst), nil
}

func (g *gate) ReadMany(ctx context.Context, file uint64, parts []storage.Part) (err error) {
	for i := range parts {
		if parts[i].CRC, err = g.Read(ctx, file, parts[i].Off, parts[i].Dst); err != nil {
			return err
		}
	}
	return nil
}

func (g *gate) Delete(_ context.Context, file uint64) error {
	if err := g.enter(opDelete); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.files, file)
	return nil
}

func (g *gate) List(context.Context) ([]storage.File, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []storage.File
	for n, p := range g.files {
		out = append(out, storage.File{Number: n, Size: uint64(len(p))})
	}
	return out, nil
}

func (g *gate) Probe(context.Context, bool) (spill.Capacity, error) {
	err := g.enter(opProbe)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.capacity, err
}

func (g *gate) Close(bool) error { return nil }
