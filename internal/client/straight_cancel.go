package client

import (
	"time"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
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
	m.unwanted(direct.Wish{Force: c.Force, Recursive: c.Recursive, Insist: c.Insist})
	return nil
}

// unwanted cancels a call, by its channel: the process of its actor knows what it has made.
func (m *message) unwanted(w direct.Wish) {
	m.Cancel(w)
	if w.Insist && !w.Force {
		time.AfterFunc(insistAfter, func() { m.Cancel(direct.Wish{Force: true}) }) // one that has ended is left alone
	}
}

// cancelled takes the owner's word that somebody has cancelled a call of which the owner was told. One that is not here any more has ended, as it is told.
func (s *straight) cancelled(c *wire.CancelCall) {
	for _, k := range s.calls.Find(c.Actor, func(k *shell.Call) bool { return k.ID == c.Task }) {
		messageOf(k).unwanted(direct.Wish(c.Wish))
	}
}

// CancelMade cancels what a call that runs here, as tc, has made: the calls that went straight here, what the owner was told of there.
func (c *Client) CancelMade(tc *TaskContext, w direct.Wish) {
	if tc.calls.Load() == 0 {
		return
	}
	c.straight.cancelMade(tc.Base(), w)
	if tc.making.Load() == makes {
		_ = c.outbox.send(&wire.CancelMade{Task: tc.Base(), Wish: wire.Wish(w)}) // if the connection is gone, so is the job
	}
}

// cancelMade cancels the calls of a task that went straight, and of which the owner was not told: the others it cancels itself.
func (s *straight) cancelMade(by ids.TaskID, w direct.Wish) {
	if s.boxes == nil {
		return
	}
	mine := s.calls.FindAll(func(k *shell.Call) bool {
		m := messageOf(k)
		return m.spec.Parent == by && !m.told.Load()
	})
	for _, k := range mine {
		messageOf(k).unwanted(w)
	}
}

// callOf is the call of a task that went straight and somebody has a reference to; nil: there is none.
func (s *straight) callOf(task ids.TaskID) *message {
	if s.boxes == nil {
		return nil
	}
	id := task.Return(0)
	sh := s.handles.table.shard(&id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if h := sh.find(&id); h != nil {
		return h.call.Load()
	}
	return nil
}
