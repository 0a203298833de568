package actors

import (
	"context"
	"time"
)

// Ref addresses a component. It stays valid over restarts and may be shared.
type Ref[E any] struct {
	m   *mailbox[E]
	inc uint32 // of the core that self belongs to; 0: of Spawn
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

// Deliver is Post without a bound: for what is not said again, and whose number something else bounds, such as the end of work
// that was begun, or what one component tells another of what it has taken. One that has stopped is told nothing.
func (r *Ref[E]) Deliver(ev E) { r.m.force(ev, 0) }

// Send is Post that waits for room while the mailbox is at its bound, first come first
// served. It is for callers outside components: a component that sends to itself, or
// in a ring, waits for itself. The error is ErrStopped or the context's cause; on an error the
// event was not taken.
func (r *Ref[E]) Send(ctx context.Context, ev E) error { return r.m.send(ctx, ev) }

// SendRun is Send that spares a switch between goroutines: where the component is idle,
// and has no thread of its own, the event is stepped, its effects run, on the caller's
// goroutine before SendRun returns. What comes meanwhile is left to the component's own
// turn. The caller must hold no lock that an effect takes, and lose nothing by a core
// that calls runtime.Goexit but its goroutine.
func (r *Ref[E]) SendRun(ctx context.Context, ev E) error {
	turn, err := r.m.sendTurn(ctx, ev)
	if turn != nil {
		turn()
	}
	return err
}

// SendTurn is SendRun in two parts: the event is queued, and where the component is idle turn is
// what SendRun would then do. The caller must call it once, and soon: until it does, the
// component does nothing. It is nil where there is nothing to do.
func (r *Ref[E]) SendTurn(ctx context.Context, ev E) (turn func(), err error) {
	return r.m.sendTurn(ctx, ev)
}

// After posts the event after d, beyond the bound if need be. The timer ends with the
// component; armed through the self that Do is given, it ends with that core.
func (r *Ref[E]) After(d time.Duration, ev E) (cancel func()) { return r.m.after(d, ev, r.inc) }

// Done is closed when the component has stopped. A restart is no stop.
func (r *Ref[E]) Done() <-chan struct{} { return r.m.n.done }

// Stop stops the component's children, last started first, then drains its mailbox and
// stops it. It must not be called on the goroutine of the component or of one below
// it: there BeginStop is meant. The error is a *StopError when ctx ends first.
func (r *Ref[E]) Stop(ctx context.Context) error { return r.m.n.sys.stop(ctx, r.m.n) }

// BeginStop is Stop that does not wait; its deadline is Config.StopTimeout.
func (r *Ref[E]) BeginStop() { r.m.n.sys.beginStop(r.m.n) }
