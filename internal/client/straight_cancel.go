package client

import (
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// insistAfter is how long a cancel that insists lets a call notice, as the owner does for tasks.
const insistAfter = 2 * time.Second

// Cancel cancels a task. With Force it does not wait for the task to notice, with Insist not for long; with
// Recursive what the task submitted is cancelled too.
func (c *Client) Cancel(m wire.Cancel) error { return c.straight.cancel(m) }

// Abandon cancels a task of a graph that nobody needs any more, with what it has submitted; if it takes no notice, its process is
// killed. If the connection is gone there is nothing to cancel: the job is gone too.
func (c *Client) Abandon(task ids.TaskID) {
	_ = c.Cancel(wire.Cancel{Task: task, Recursive: true, Insist: true})
}

func (s *straight) cancel(c wire.Cancel) error {
	m := s.callOf(c.Task)
	if m == nil || m.task.Load() {
		return s.outbox.cancel(c)
	}
	if err := s.Err(); err != nil {
		return err
	}
	m.Call.Cancel(c.Force)
	if c.Insist && !c.Force {
		time.AfterFunc(insistAfter, func() { m.Call.Cancel(true) }) // one that has ended is left alone
	}
	if c.Recursive {
		return s.outbox.cancel(c) // the owner knows what the call has submitted
	}
	return nil
}

// callOf is the call of a task that went straight and somebody has a reference to; nil: there is none.
func (s *straight) callOf(task ids.TaskID) *message {
	if s.boxes == nil {
		return nil
	}
	if m := s.unsubmitted(task); m != nil {
		return m
	}
	id := task.Return(0)
	sh := s.handles.table.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if h := sh.find(id); h != nil {
		return h.call.Load()
	}
	return nil
}
