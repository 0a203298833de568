package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/ids"
)

// programs are the clients in this process that are drivers, by job: there may be several, of several nodes.
var programs sync.Map // of *Client

// announcePatience bounds the wait for the owner of another program.
const announcePatience = 10 * time.Second

// announcing has the owner know of what this process made before a reference to it leaves by a way that this client has no part in.
type announcing struct {
	*base
	outbox *outbox
	gets   *gets
	unmade atomic.Uint32 // objects that were asked for and nobody makes
}

// enter makes a driver known to the other programs of its process.
func (an *announcing) enter(c *Client) {
	if !an.root.Task.IsZero() {
		programs.Store(an.cfg.Welcome.Job, c)
	}
}

func (an *announcing) leave(c *Client) { programs.CompareAndDelete(an.cfg.Welcome.Job, c) }

// AnnounceOthers is called before references leave in a value of this client. Where they are to objects of other programs in this process it waits until the
// owners of these have heard what those programs have said: messages wait a little for others, and the owner that gets this value asks on another way. Were it the
// faster, an object would not be known yet where it is asked for, and so be taken for freed. A program that is closed, or whose node does not answer, is not waited for.
func (an *announcing) AnnounceOthers(ctx context.Context, refs []ids.ObjectID) {
	told := an.cfg.Welcome.Job
	for _, id := range refs {
		job := id.Job()
		if job == an.cfg.Welcome.Job || job == told {
			continue
		}
		if other, ok := programs.Load(job); ok {
			told = job
			other.(*Client).announce(ctx)
		}
	}
}

// announce waits until the owner has heard all. It answers in order, so it is asked for an object that nobody makes, which it answers at once.
func (an *announcing) announce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(WithTask(ctx, &an.root), announcePatience)
	defer cancel()
	h := an.outbox.Bind(an.root.Task.Put(ids.PutBit - an.unmade.Add(1))) // numbers of puts from the end: no program comes so far
	defer h.Release()
	_, _, _ = an.gets.Wait(ctx, []*Handle{h}, 1)
}
