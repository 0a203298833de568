package client

import (
	"context"
	"runtime"
	"sync"
	"weak"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Room bounds the calls of an actor that this process has under way: those that have not ended, as far as is known here. The node bounds
// the calls of all processes together, and refuses by the result. All references of a process to an actor share one Room.
type Room struct {
	w    *Watcher
	most int

	mu      sync.Mutex
	token   int // guarded by mu
	inside  int // guarded by mu
	waiting int // guarded by mu: how many wait for room
}

// rooms has the Rooms of actors that this process calls, as long as something refers to them or a call is under way. They do not refer
// to a client.
type rooms struct {
	mu sync.Mutex
	of map[ids.ActorID]weak.Pointer[Room] // guarded by mu
}

// Room gives the room of an actor with the limit most; nil if there is no limit.
func (ws *watchers) Room(actor ids.ActorID, most int) *Room {
	if most <= 0 {
		return nil
	}
	ws.rooms.mu.Lock()
	defer ws.rooms.mu.Unlock()
	if r := ws.rooms.of[actor].Value(); r != nil {
		return r
	}
	if ws.rooms.of == nil {
		ws.rooms.of = make(map[ids.ActorID]weak.Pointer[Room])
	}
	r := &Room{w: ws.NewWatcher(), most: most}
	r.w.owner = r
	ws.rooms.of[actor] = weak.Make(r)
	runtime.AddCleanup(r, ws.rooms.forget, actor)
	return r
}

// KnownRoom gives the room of an actor whose limit another reference of this process knows; nil if none knows it, or there
// is no limit.
func (ws *watchers) KnownRoom(actor ids.ActorID) *Room {
	ws.rooms.mu.Lock()
	defer ws.rooms.mu.Unlock()
	return ws.rooms.of[actor].Value()
}

func (s *rooms) forget(actor ids.ActorID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[actor].Value() == nil { // else another has come
		delete(s.of, actor)
	}
}

// Enter takes a place for a call that is about to be made. If none is free it fails with ErrPendingCallsLimit, or waits, at most until ctx ends.
func (r *Room) Enter(ctx context.Context, actor ids.ActorID, wait bool) error {
	for {
		if r.tryEnter() {
			return nil
		}
		if err := r.w.ws.Err(); err != nil {
			return err
		}
		if !wait {
			return errs.New(errs.CodePendingCallsLimit, "actor %v has %d calls of this process pending, its limit: wait for some to end, or have the call wait for room", actor, r.most)
		}
		if err := r.await(ctx); err != nil {
			return err
		}
	}
}

func (r *Room) tryEnter() bool {
	ended := len(r.w.Take(nil))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside -= ended
	if r.inside >= r.most {
		return false
	}
	r.inside++
	r.passOn()
	return true
}

// passOn wakes another waiter if there is room: the signal that woke this one may have stood for several places.
// The lock is held.
func (r *Room) passOn() {
	if r.waiting > 0 && r.inside < r.most {
		select {
		case r.w.ch <- struct{}{}:
		default:
		}
	}
}

func (r *Room) await(ctx context.Context) error {
	r.mu.Lock()
	r.waiting++
	r.passOn() // room that came before it was known that somebody waits
	r.mu.Unlock()
	err := r.w.Wait(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
	if err != nil {
		r.passOn() // this waiter may have been woken meanwhile
	}
	return err
}

// Called says that the call was made. hs are the handles of its results or of its end; the call's place is free when the first is resolved.
// Without handles the call was not made.
func (r *Room) Called(hs []*Handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(hs) > 0 {
		r.token++
		ask, err := r.w.add(hs[0], r.token)
		if ask {
			err = r.w.ws.outbox.ask([]wire.Get{{ID: hs[0].id}})
		}
		if err == nil {
			return
		} // the connection has ended: nobody needs room any more
	}
	r.inside--
	r.passOn()
}
