package actors

import (
	"context"
	"time"
)

// Ref addresses a component. It stays valid over restarts and may be shared.
type Ref[E any] struct {
	m   *mailbox[E]
	inc uint32 // number of the core that self belongs to; 0: from Spawn
}

func (r *Ref[E]) treeNode() *node { return r.m.n }

// Kind of the component.
func (r *Ref[E]) Kind() string { return r.m.n.kind }

// Name of the component.
func (r *Ref[E]) Name() string { return r.m.n.name }

// Depth is the number of messages that wait, to within 64.
func (r *Ref[E]) Depth() int {
	d, _ := r.m.depth()
	return d
}

// Post appends the event and never blocks. Events of one goroutine are stepped in the
// order of its posts. The error is ErrStopped, or ErrMailboxFull beyond twice the bound.
func (r *Ref[E]) Post(ev E) error { return r.m.post(ev) }

// Deliver is Post without a bound. It is for events that are not repeated and whose number something else bounds: such as the
// end of work that was begun, or a report of what a component has taken from another. A stopped component gets nothing.
func (r *Ref[E]) Deliver(ev E) { r.m.force(ev, 0) }

// Send is Post that waits for room while the mailbox is at its bound, first come first
// served. It is for callers outside components: a component that sends to itself, or in a cycle, waits for itself.
// The error is ErrStopped or the context's cause; on an error the event was not taken.
func (r *Ref[E]) Send(ctx context.Context, ev E) error { return r.m.send(ctx, ev) }

// SendRun is Send that saves a switch between goroutines: if the component is idle and has no thread of its own,
// the event is stepped and its effects run on the caller's goroutine, before SendRun returns. Events that arrive
// meanwhile are left to the component's own turn. The caller must not hold a lock that an effect takes, and must
// bear that a core which calls runtime.Goexit ends its goroutine.
func (r *Ref[E]) SendRun(ctx context.Context, ev E) error {
	turn, err := r.m.sendTurn(ctx, ev)
	if turn != nil {
		turn()
	}
	return err
}

// SendTurn is SendRun in two parts: it queues the event, and if the component is idle, turn does the rest of
// SendRun. The caller must call turn once, and soon: until then the component does nothing. It is nil if there is
// nothing to do.
func (r *Ref[E]) SendTurn(ctx context.Context, ev E) (turn func(), err error) {
	return r.m.sendTurn(ctx, ev)
}

// After posts the event after d, beyond the bound if need be. The timer ends with the
// component; armed through the self that Do is given, it ends with that core.
func (r *Ref[E]) After(d time.Duration, ev E) (cancel func()) { return r.m.after(d, ev, r.inc) }

// Done is closed when the component has stopped. A restart is not a stop.
func (r *Ref[E]) Done() <-chan struct{} { return r.m.n.done }

// Stop stops the component's children, last started first, then drains its mailbox and
// stops it. It must not be called on the goroutine of the component or of one below it: use BeginStop there. The
// error is a *StopError when ctx ends first.
func (r *Ref[E]) Stop(ctx context.Context) error { return r.m.n.sys.stop(ctx, r.m.n) }

// BeginStop is Stop that does not wait; its deadline is Config.StopTimeout.
func (r *Ref[E]) BeginStop() { r.m.n.sys.beginStop(r.m.n) }
