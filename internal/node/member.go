package node

import (
	"context"
	"fmt"
	"os"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/node/jobs"
	"mobula/internal/node/outlet"
	"mobula/internal/pidfd"
	"mobula/wire"
)

// A client has a component of its own in the tree, driver/N or worker/N, from when it joins
// until everybody who knew it has been told that it is gone.

// memberState is where a client stands.
type memberState uint8

const (
	memberJoined memberState = iota
	memberEnded              // its process has ended; what it sent before is still read
	memberLeft               // it uses the node no more; the process may still read what it pinned
	memberGone               // nothing of it is read any more
)

// memberEvent is what a client's component steps on.
type memberEvent uint8

const (
	eventWatch  memberEvent = iota // the component begins
	eventLeft                      // the connection ended, or the client said goodbye
	eventDone                      // after a goodbye the connection ended too: the client reads nothing any more
	eventExited                    // the process did
)

// memberEffect is what it asks for.
type memberEffect uint8

const (
	awaitExit  memberEffect = iota // wait for the process' end
	endReading                     // end the connection behind what was sent: a child of the process may hold it open
	tellPeers                      // owners, pool and monitor: the client is gone
	dropPins                       // the store: nothing of the client's is read any more
	stopMember                     // the component's work is done
)

// memberCore is the logic: two facts, told in this order, once each.
type memberCore struct{ state memberState }

// memberSteps is the whole of it: state, event, next state, effects.
var memberSteps = map[memberState]map[memberEvent]struct {
	next memberState
	do   []memberEffect
}{
	memberJoined: {
		eventWatch:  {memberJoined, []memberEffect{awaitExit}},
		eventLeft:   {memberLeft, []memberEffect{tellPeers}},
		eventDone:   {memberJoined, nil}, // a goodbye comes first
		eventExited: {memberEnded, []memberEffect{endReading}},
	},
	memberEnded: {
		eventWatch:  {memberEnded, nil},
		eventLeft:   {memberGone, []memberEffect{tellPeers, dropPins, stopMember}},
		eventDone:   {memberEnded, nil}, // likewise
		eventExited: {memberEnded, nil},
	},
	memberLeft: {
		eventWatch:  {memberLeft, nil},
		eventLeft:   {memberLeft, nil},
		eventDone:   {memberGone, []memberEffect{dropPins, stopMember}},
		eventExited: {memberGone, []memberEffect{dropPins, stopMember}},
	},
	memberGone: {eventWatch: {memberGone, nil}, eventLeft: {memberGone, nil}, eventDone: {memberGone, nil}, eventExited: {memberGone, nil}},
}

func (c *memberCore) Step(_ int64, ev memberEvent) []memberEffect {
	step := memberSteps[c.state][ev]
	c.state = step.next
	return step.do
}

// startMember adds the client's component to the tree.
func (n *Node) startMember(s *session) error {
	var parent actors.Parent = n.drivers
	kind := "driver"
	if s.role == wire.RoleWorker {
		parent, kind = n.rayletSup, "worker"
	}
	name := kind + "/" + s.id.String()
	if s.nth > 0 {
		name += fmt.Sprintf(".%d", s.nth) // the one before may still wait for the process
	}
	ref, err := actors.Spawn(parent, actors.Spec[memberEvent, memberEffect]{
		Kind: kind, Name: name,
		New: func(actors.Start) (actors.Core[memberEvent, memberEffect], []memberEvent, error) {
			if s.hasLeft() { // what was told is not told again: the session knows
				return &memberCore{}, []memberEvent{eventWatch, eventLeft}, nil
			}
			return &memberCore{}, []memberEvent{eventWatch}, nil
		},
		Do:      func(self *actors.Ref[memberEvent], e memberEffect) { n.doMember(s, self, e) },
		Mailbox: 16,
		Policy:  actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	if err != nil {
		return err
	}
	s.ref = ref
	return nil
}

func (n *Node) doMember(s *session, self *actors.Ref[memberEvent], e memberEffect) {
	switch e {
	case awaitExit:
		if s.pid == int32(os.Getpid()) {
			return
		}
		n.work.Go(func() {
			ctx, cancel := context.WithCancel(n.life)
			defer cancel()
			defer context.AfterFunc(s.done, cancel)()
			if pidfd.Until(ctx, int(s.pid)) {
				self.Deliver(eventExited)
			}
		})
	case endReading:
		if out, ok := s.Outlet.(*outlet.Socket); ok {
			out.EndReading()
		}
	case tellPeers:
		n.jobs.ref.Deliver(jobs.Gone{Client: s.id, Nth: s.nth, Err: s.why()})
		if s.pid == int32(os.Getpid()) { // the process goes on, and nothing of the client's
			self.Deliver(eventExited)
		}
	case dropPins:
		n.jobs.ref.Deliver(jobs.Unread{Client: s.id, Nth: s.nth})
	case stopMember:
		s.finish()
		self.BeginStop()
	}
}

// join lets a client in: it is known to the store, and to its job's owner.
func (n *Node) join(s *session) error {
	if s.role == wire.RoleTool { // of which nobody needs to know
		n.clients.add(s)
		return nil
	}
	return n.jobs.ask(s, func(a jobs.Ask) jobs.Event { return jobs.Join{Ask: a, Client: s.client()} })
}

// part is a client's goodbye: its session ends, and its connection stays for the pins that it gives back. What it reads until
// then stays what it is; the end of the connection says that it reads nothing any more.
func (n *Node) part(s *session, m *wire.Bye) {
	why := m.Err
	if why == nil {
		why = errs.New(errs.CodeDisconnected, "process %d has left the node", s.pid)
	}
	s.parted.Store(true)
	n.leave(s, why)
}

// hungUp ends a session with its connection. closed: the client closed it, perhaps before it had read everything.
func (n *Node) hungUp(s *session, why *errs.Error, closed bool) {
	n.leave(s, why)
	if closed && s.parted.Load() && s.ref != nil {
		s.ref.Deliver(eventDone)
	}
}

// leave ends a client's session, once.
func (n *Node) leave(s *session, err *errs.Error) {
	if !s.leave(err) {
		return
	}
	n.clients.remove(s)
	if s.ref != nil {
		s.ref.Deliver(eventLeft)
	}
}
