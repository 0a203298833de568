package shell

import (
	"fmt"
	"sync"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/segment"
	"mobula/objectstore/spill"
)

// Peers are the stores of other nodes, as this one uses them. Neither call blocks. Each done is called once, from any goroutine, and in
// bounded time: a core that is built anew waits for imports under way.
type Peers interface {
	// Fetch reads an object into a room, which nobody else touches until done, from the first of some nodes, and from the others what that
	// one does not send. An error that wraps spill.ErrMissing or spill.ErrCorrupt says that the first has no intact copy, one of
	// errs.CodeSegmentUnavailable that the room could not be written; any other may pass.
	Fetch(from []ids.Home, id ids.ObjectID, attempt uint32, dst *segment.Room, done func(error))
	// Serve answers an objectstore.Export with the object, whose bytes do not change until done, or with the reason why there is none.
	Serve(to ids.Home, token uint64, data []byte, err error, done func())
}

// alone is a node without others.
type alone struct{}

func (alone) Fetch(from []ids.Home, _ ids.ObjectID, _ uint32, _ *segment.Room, done func(error)) {
	done(fmt.Errorf("node %d is not known here: %w", from[0], spill.ErrMissing))
}

func (alone) Serve(_ ids.Home, _ uint64, _ []byte, _ error, done func()) { done() }

// serving is what other nodes read. A new core says again what an earlier one has said: it is sent once.
type serving struct {
	mu  sync.Mutex
	now map[serveKey]struct{} // guarded by mu
}

type serveKey struct {
	to    ids.Home
	token uint64
}

// begin is false for what is being sent already.
func (s *serving) begin(k serveKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.now[k]; again {
		return false
	}
	if s.now == nil {
		s.now = make(map[serveKey]struct{})
	}
	s.now[k] = struct{}{}
	return true
}

func (s *serving) end(k serveKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.now, k)
}

// fetch imports an object.
func (s *Store) fetch(self *actors.Ref[objectstore.Event], e objectstore.Import) {
	dst, err := s.room(e)
	if err != nil {
		self.Deliver(objectstore.RestoreDone{Job: e.Job, Err: err})
		return
	}
	s.copies.Add(1)
	s.io.Add(1)
	s.o.Peers.Fetch(append([]ids.Home{e.From}, e.Others...), e.ID, e.Attempt, dst, func(err error) {
		s.io.Done()
		s.copies.Done()
		self.Deliver(objectstore.RestoreDone{Job: e.Job, Err: err})
	})
}

// room is where an object that is imported goes.
func (s *Store) room(e objectstore.Import) (*segment.Room, error) {
	b, err := s.slice(e.Place, e.Extent, true)
	if err != nil || !e.Cold {
		return segment.NewRoom(b), err
	}
	seg, err := s.o.Memory.Segment(e.Place)
	if err != nil {
		return nil, err
	}
	return seg.ColdRoom(b, e.Extent.Off), nil
}

// serve gives another node the object that it asked for.
func (s *Store) serve(self *actors.Ref[objectstore.Event], e objectstore.Exported) {
	k := serveKey{e.To, e.Token}
	if !s.serving.begin(k) {
		return
	}
	var data []byte
	var err error
	if e.Err != nil {
		err = e.Err
	} else {
		data, err = s.slice(e.Place, e.Extent, false)
	}
	s.io.Add(1)
	s.o.Peers.Serve(e.To, e.Token, data, err, func() {
		s.io.Done()
		s.serving.end(k)
		self.Deliver(objectstore.ExportDone{To: e.To, Token: e.Token})
	})
}
