package shell

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pair is two nodes in memory, and the ends of a connection that the first has made.
func pair(t *testing.T, m *Memory) (a, b Conn) {
	t.Helper()
	nodes := memoryNetwork{m}
	from, to := nodes.listen(t, 1), nodes.listen(t, 2)
	t.Cleanup(func() { from.Close(); to.Close() })
	a, err := from.Dial(t.Context(), name(2))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = to.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func say(t *testing.T, from, to Conn, what string) {
	t.Helper()
	if _, err := from.Write([]byte(what)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(what))
	if _, err := io.ReadFull(to, b); err != nil || string(b) != what {
		t.Fatalf("%q, %v; want %q", b, err, what)
	}
}

func TestMemoryCarriesBytes(t *testing.T) {
	a, b := pair(t, NewMemory())
	say(t, a, b, "there")
	say(t, b, a, "and back")
	large := bytes.Repeat([]byte("large"), 100_000)
	go a.Write(large)
	got := make([]byte, len(large))
	if _, err := io.ReadFull(b, got); err != nil || !bytes.Equal(got, large) {
		t.Error(err)
	}
	if _, err := a.Write([]byte("last")); err != nil {
		t.Error(err)
	}
	a.Close()
	if rest, err := io.ReadAll(b); err != nil || string(rest) != "last" {
		t.Errorf("%q, %v", rest, err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestMemoryFaults(t *testing.T) {
	t.Run("cut", func(t *testing.T) {
		m := NewMemory()
		a, b := pair(t, m)
		if _, err := a.Write([]byte("lost")); err != nil {
			t.Fatal(err)
		}
		m.Cut(name(1), name(2))
		for _, c := range []Conn{a, b} {
			if n, err := c.Read(make([]byte, 9)); n != 0 || !errors.Is(err, ErrCut) {
				t.Errorf("%d bytes, %v", n, err)
			}
		}
	})
	t.Run("cut after bytes", func(t *testing.T) {
		m := NewMemory()
		m.CutAfter(name(1), name(2), 3)
		a, b := pair(t, m)
		if n, err := a.Write([]byte("12345")); n != 3 || !errors.Is(err, ErrCut) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if got, err := io.ReadAll(b); string(got) != "123" || !errors.Is(err, ErrCut) {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("stall", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := NewMemory()
			a, b := pair(t, m)
			m.Stall(name(2), name(1), true)
			say(t, a, b, "the other way goes on")
			if _, err := b.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			read := make(chan error)
			go func() {
				_, err := a.Read(make([]byte, 1))
				read <- err
			}()
			synctest.Wait()
			select {
			case err := <-read:
				t.Fatalf("a read of a stalled connection: %v", err)
			default:
			}
			m.Stall(name(2), name(1), false)
			if err := <-read; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("half-close", func(t *testing.T) {
		m := NewMemory()
		a, b := pair(t, m)
		m.HalfClose(name(1), name(2))
		if _, err := b.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		say(t, b, a, "the other way goes on")
	})
	t.Run("refuse", func(t *testing.T) {
		m := NewMemory()
		nodes := memoryNetwork{m}
		tr := nodes.listen(t, 1)
		defer tr.Close()
		if _, err := tr.Dial(t.Context(), name(2)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
		other := nodes.listen(t, 2)
		m.Refuse(name(1), name(2), errInjected)
		if _, err := tr.Dial(t.Context(), name(2)); !errors.Is(err, errInjected) {
			t.Error(err)
		}
		other.Close()
		if _, err := other.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestMemoryDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t, NewMemory())
		begin := time.Now()
		a.SetReadDeadline(begin.Add(time.Second))
		a.SetWriteDeadline(begin.Add(2 * time.Second))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if n, err := a.Write(make([]byte, 2*streamRoom)); n != streamRoom || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if d := time.Since(begin); d != 2*time.Second {
			t.Errorf("after %v", d)
		}
	})
}
