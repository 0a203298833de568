package shell

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
)

var errInjected = errors.New("injected")

// faults makes the connections of a transport break, stall, and be refused, between the hub and whatever transport it is.
type faults struct {
	Transport

	mu      sync.Mutex
	random  *rand.Rand
	most    int64 // bytes that a connection carries at most each way; 0: any number
	refuse  bool
	late    bool          // connections are nowWriters that write a part only
	stalled chan struct{} // not nil: writes wait for its end
	writes  int
	broken  int // connections that were broken
}

func withFaults(f *faults) func(*Config) {
	return func(c *Config) {
		f.Transport, f.random = c.Transport, rand.New(rand.NewPCG(1, uint64(c.Self.Home)))
		c.Transport = f
	}
}

func (f *faults) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *faults) stall() { f.set(func() { f.stalled = make(chan struct{}) }) }

func (f *faults) goOn() {
	f.set(func() {
		close(f.stalled)
		f.stalled = nil
	})
}

func (f *faults) written() (n int) {
	f.set(func() { n = f.writes })
	return n
}

func (f *faults) Dial(ctx context.Context, address string) (Conn, error) {
	refuse := false
	f.set(func() { refuse = f.refuse })
	if refuse {
		return nil, errInjected
	}
	return f.wrap(f.Transport.Dial(ctx, address))
}

func (f *faults) Accept() (Conn, error) { return f.wrap(f.Transport.Accept()) }

func (f *faults) wrap(c Conn, err error) (Conn, error) {
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &faultyConn{Conn: c, f: f, ended: make(chan struct{})}
	w.in, w.out = f.budget(), f.budget()
	if f.late {
		return &lateConn{faultyConn: w}, nil
	}
	return w, nil
}

// lateConn is a connection that takes at once only a part of what it is given.
type lateConn struct {
	*faultyConn
	rest []byte
}

func (c *lateConn) WriteNow(b []byte) (done bool, err error) {
	n := 0
	c.f.set(func() { n = c.f.random.IntN(len(b) + 1) })
	if _, err := c.Write(b[:n]); err != nil {
		return false, err
	}
	c.rest = bytes.Clone(b[n:])
	return len(c.rest) == 0, nil
}

func (c *lateConn) Finish() error {
	rest := c.rest
	c.rest = nil
	_, err := c.Write(rest)
	return err
}

func (c *lateConn) Write(b []byte) (int, error) {
	if len(c.rest) > 0 {
		return 0, errors.New("a write before the one before it was finished")
	}
	return c.faultyConn.Write(b)
}

// budget draws after how many bytes a connection breaks. mu is held.
func (f *faults) budget() int64 {
	if f.most == 0 {
		return 1 << 62
	}
	return f.random.Int64N(f.most)
}

type faultyConn struct {
	Conn
	f       *faults
	in, out int64 // bytes until it breaks
	ended   chan struct{}
	once    sync.Once
}

func (c *faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(int64(len(b)), max(c.in, 1))])
	if c.in -= int64(n); c.in <= 0 {
		c.fail()
		return max(n+int(min(c.in, 0)), 0), errInjected
	}
	return n, err
}

func (c *faultyConn) Write(b []byte) (int, error) {
	var stalled chan struct{}
	c.f.set(func() {
		c.f.writes++
		stalled = c.f.stalled
	})
	if stalled != nil {
		select {
		case <-stalled:
		case <-c.ended:
			return 0, errInjected
		}
	}
	n, err := c.Conn.Write(b[:min(int64(len(b)), c.out)])
	if c.out -= int64(n); n < len(b) && err == nil {
		c.fail()
		err = errInjected
	}
	return n, err
}

func (c *faultyConn) fail() {
	c.f.set(func() { c.f.broken++ })
	_ = c.Close()
}

func (c *faultyConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}
