package shell

import (
	"bytes"
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore/segment"
	"mobula/remote/transfer"
	protocol "mobula/wire"
)

// coldRooms gives rooms in one segment, which has no memory. Once told, it finds no more.
func coldRooms(t *testing.T, size int, full *atomic.Bool) func(i int) *segment.Room {
	return coldRoomsOf(t, size, func(*os.File) (uint64, string) {
		if full.Load() {
			return 0, "a test"
		}
		return 1 << 40, "a test"
	})
}

// coldRoomsOf is coldRooms where memory tells what there is.
func coldRoomsOf(t *testing.T, size int, memory segment.Memory) func(i int) *segment.Room {
	s, err := segment.Open(segment.Config{Size: uint64(4 * size), Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	m, err := segment.OpenMapping(s.File(), s.Size())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), s.Close(true)); err != nil {
			t.Error(err)
		}
	})
	return func(i int) *segment.Room {
		off := uint64(i * size)
		b, err := m.Slice(protocol.Extent{Off: off, Size: uint64(size)}, true)
		if err != nil {
			t.Fatal(err)
		}
		return s.ColdRoom(b, off)
	}
}

// An object that comes into memory which is only then brought is relayed as any other, and goes on after a cut.
func TestColdRooms(t *testing.T) {
	networks(t, func(t *testing.T, net *network) {
		const size = 24*mib + 4711
		all := newNodes(t, net, 3)
		room := coldRooms(t, 32*mib, new(atomic.Bool))
		want := pattern(1, size)
		all[0].put(object(1), want)
		net.when(1, size/2, net.cut)
		var done []<-chan error
		rooms := []*segment.Room{room(0), room(1), room(2)}
		for i, r := range rooms {
			r.Bytes = r.Bytes[:size]
			done = append(done, all[1+i/2].getInto(object(1), r, 1)) // the second node asks twice
		}
		for i, ch := range done {
			if err := testkit.Receive(t, "an answer", ch); err != nil || !bytes.Equal(rooms[i].Bytes, want) {
				t.Errorf("room %d: %v", i, err)
			}
		}
	})
}

// Memory that runs out while an object comes ends that fetch with the reason, and no other.
func TestAColdRoomWithoutMemory(t *testing.T) {
	networks(t, func(t *testing.T, net *network) {
		const size = 48 * mib
		all := newNodes(t, net, 2)
		var full atomic.Bool
		room := coldRooms(t, size, &full)
		want := pattern(2, size)
		all[0].put(object(1), pattern(1, size))
		all[0].put(object(2), want)
		net.when(1, size/2, func() { full.Store(true) })
		warm := make([]byte, size)
		one, two := all[1].getInto(object(1), room(0), 1), all[1].get(object(2), warm, 1)
		if err := testkit.Receive(t, "an answer", one); !errors.Is(err, errs.ErrSegmentUnavailable) {
			t.Errorf("without memory: %v", err)
		}
		if err := testkit.Receive(t, "an answer", two); err != nil || !bytes.Equal(warm, want) {
			t.Errorf("the other object: %v", err)
		}
	})
}

// What a holder says after a chunk is heard after it: nobody is done with a room that is being written.
func TestAHolderThatRefusesWhileAChunkIsPutInPlace(t *testing.T) {
	n := newNetwork(t, "pipes")
	refused := make(chan struct{})
	want := pattern(1, 2*mib)
	holder(t, n, 9, func(c net.Conn) {
		if p, ok := readFrame(c).(transfer.Pull); ok {
			sendChunk(c, p.Token, want, p.Offset, 0)
			_, _ = c.Write(transfer.Append(nil, transfer.Refused{Token: p.Token, Reason: transfer.Missing}))
			close(refused)
			drain(c)
		}
	})
	var over atomic.Bool
	room := coldRoomsOf(t, 2*mib, func(*os.File) (uint64, string) {
		<-refused
		for range 10_000 { // time enough for it to be told
			runtime.Gosched()
		}
		if over.Load() {
			t.Error("the fetch has ended, and its room is written")
		}
		return 1 << 40, "a test"
	})(0)
	done := make(chan error, 1)
	newNodes(t, n, 1)[0].Fetch([]ids.Home{9}, object(1), 0, room, func(err error) {
		over.Store(true)
		done <- err
	})
	if err := testkit.Receive(t, "an answer", done); !errors.Is(err, transfer.ErrNoHolder) {
		t.Error(err)
	}
}
