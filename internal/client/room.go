package client

import (
	"context"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Room bounds the calls of one actor that this process has under way: those whose first result is not known here. The node bounds those of all
// processes together, and tells only by the result. A call of which no result is kept, or a stream, only passes through.
type Room struct {
	w    *Watcher
	most int

	mu      sync.Mutex
	token   int // guarded by mu
	inside  int // guarded by mu
	waiting int // guarded by mu: who waits for room
}

// NewRoom makes the room of an actor.
func (c *Client) NewRoom(most int) *Room { return &Room{w: c.NewWatcher(), most: most} }

// Enter takes the place of a call that is about to be made. Where there is none it fails with ErrPendingCallsLimit, or waits, at most until ctx ends.
func (r *Room) Enter(ctx context.Context, actor ids.ActorID, wait bool) error {
	for {
		if r.tryEnter() {
			return nil
		}
		if err := r.w.c.Err(); err != nil {
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

// passOn wakes another one who waits, where there is room: what woke this one may have been more. The lock is held.
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
		r.passOn() // this one may have been woken all the same
	}
	return err
}

// Called says that the call was made, with these handles on its results, none if it was not: its place is free when the first is resolved.
func (r *Room) Called(hs []*Handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(hs) > 0 {
		r.token++
		ask, err := r.w.add(hs[0], r.token)
		if ask {
			err = r.w.c.ask([]wire.Get{{ID: hs[0].id}})
		}
		if err == nil {
			return
		} // the connection is over: nobody needs room any more
	}
	r.inside--
	r.passOn()
}
