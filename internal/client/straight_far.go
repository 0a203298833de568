package client

import (
	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/wired"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// This file is calls that go to actors in other processes, by channels. What goes to the owner and what goes by a channel do not wait for one another, so here is what must.

// unreadFar is how many bytes of answers a channel may leave unacknowledged.
const unreadFar = 16 << 20

// openFar opens the end of a channel. One that cannot be opened is as one that has broken: the owner is asked.
func (s *straight) openFar(c *shell.Callee, w *wire.Way) {
	way := shell.Way{Instance: w.Instance, Channel: direct.Channel(w.Channel), Credit: straightCredit, Retries: w.Retries, Groups: w.Groups}
	if w.Opened == nil {
		c.Open(nil, way)
		return
	}
	if _, err := wired.OpenCall(w.Opened, c, way, unreadFar, s.cfg.Lender, s.share); err != nil {
		s.log.Warn("the end of a channel was not opened", "actor", w.Actor, "channel", w.Channel, "err", err)
		c.Open(nil, way)
	}
}

// share has the owner know of a call that runs, before a result of it is stored there.
func (s *straight) share(k *shell.Call, done func(*errs.Error)) {
	m := messageOf(k)
	s.mu.Lock()
	m.shown = append(m.shown, done)
	s.mu.Unlock()
	k.Leaves()
}

// isShown tells who waits for it that the owner knows of a call. The Callee's lock is held.
func (s *straight) isShown(m *message) {
	s.mu.Lock()
	all := m.shown
	m.shown = nil
	s.mu.Unlock()
	if len(all) == 0 {
		return
	}
	s.start(func() { // if the client is closing, so are its channels
		for _, done := range all {
			done(nil)
		}
	})
}

// waitForOwner has a call wait in its place until the owner knows of what it refers to, or of the call itself, if it is a stream: its actor's process, which speaks to
// the owner too, may be faster.
func (s *straight) waitForOwner(m *message) {
	if len(m.args) == 0 && !m.Shared {
		return
	}
	if m.inputs == nil {
		m.inputs = &arguments{left: 1}
	}
	s.argsMu.Lock()
	m.inputs.left++
	s.argsMu.Unlock()
	if m.Shared {
		return // ownerKnows follows
	}
	refs := make([]ids.ObjectID, len(m.args))
	for i, h := range m.args {
		refs[i] = h.id
	}
	s.marks.ask(refs, m.knownArgument)
}

// knownArgument counts that.
func (m *message) knownArgument() {
	if m.argued() {
		m.argumentsCame()
	}
}

// ownerKnows is told of each adopted call, once. A stream waits for that, where its actor may be in another process.
func (m *message) ownerKnows() {
	if m.Shared && m.tc.Client.straight.cfg.Apart {
		m.knownArgument()
	}
}

// AskHeld has the actor's process let go of what is in an answer when the owners of that know that this process holds it.
func (s *straight) AskHeld(c *shell.Callee, ch direct.Channel, ackNo uint64, o *direct.Outcome) {
	s.marks.ask(refsOf(o), func() { c.Held(ch, ackNo) })
}

// refsOf are the references in what a call has come to.
func refsOf(o *direct.Outcome) (refs []ids.ObjectID) {
	if o == nil {
		return nil
	}
	if o.Err != nil {
		refs = o.Err.AllRefs()
	}
	for _, r := range resultsOf(o) {
		refs = append(refs, r.Value.Refs...)
	}
	return refs
}

// OwnersKnow waits until the owners of objects know of all that this process has said of them, or the connection is gone.
func (c *Client) OwnersKnow(refs []ids.ObjectID) {
	known := make(chan struct{})
	c.straight.marks.ask(refs, func() { close(known) })
	select {
	case <-known:
	case <-c.dead:
	}
}
