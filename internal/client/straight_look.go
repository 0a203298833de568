package client

import (
	"mobula/internal/direct/talk"
	"mobula/internal/ids"
)

// This file is what is asked of a process about its calls that go straight.

// Underway gives the calls that go straight and have not ended.
func (c *Client) Underway() []talk.Underway {
	s := &c.straight
	if s.boxes == nil {
		return nil
	}
	calls := s.calls.Underway()
	all := make([]talk.Underway, len(calls))
	for i := range calls {
		u := &calls[i]
		m := u.Own.(*message)
		all[i] = talk.Underway{Spec: m.spec, Known: m.told.Load(), Client: s.id, Underway: u}
	}
	return all
}

// Came is what a call that went straight has come to, where somebody in the process has its results: how many bytes these take, or its error. known is false of any other.
func (c *Client) Came(task ids.TaskID) (at talk.Came, known bool) {
	if c.straight.boxes == nil {
		return at, false
	}
	o, own := c.straight.calls.Ended(task)
	if o == nil {
		return at, false
	}
	m := own.(*message)
	if m.told.Load() {
		return at, false
	}
	return talk.Came{Spec: m.spec, Bytes: o.Bytes, Err: o.Err}, true
}
