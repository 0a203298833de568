package node

import (
	"context"
	"os"
	"slices"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/fault"
	"mobula/internal/node/outlet"
	"mobula/internal/node/route"
	storeshell "mobula/objectstore/shell"
	"mobula/objectstore/spill"
	"mobula/wire"
)

func (in *injector) address() string {
	if in.cfg.Chaos == nil {
		return ""
	}
	return in.cfg.Chaos.Address()
}

// ofCalls are those of calls in this process; the node's own functions have none.
func (in *injector) ofCalls(system bool) *fault.Injector {
	if in.cfg.Chaos == nil || system {
		return nil
	}
	return &fault.Injector{D: in.cfg.Chaos, Who: fault.Subject{PID: os.Getpid()}}
}

// ofKit are those of components.
func (in *injector) ofKit() *actors.Faults {
	plan, faults := in.cfg.Chaos, in.cfg.Faults
	if plan == nil || !plan.Wants(fault.Component, "") {
		return faults
	}
	if faults == nil {
		faults = &actors.Faults{}
	}
	faults.Follow(func(kind, _, message string) (actors.Fault, bool) {
		if !plan.Wants(fault.Component, kind) {
			return actors.Fault{}, false
		}
		d := plan.Ask(in.life, fault.Site{Kind: fault.Component, Name: kind, Detail: message}, fault.Subject{PID: os.Getpid()})
		switch d.Do {
		case fault.Crash:
			return actors.Fault{Kind: kind, MessageType: message, Action: actors.PanicMidStep}, true
		case fault.Delay:
			return actors.Fault{Kind: kind, MessageType: message, Action: actors.Delay, Delay: d.For}, true
		}
		return actors.Fault{}, false
	})
	return faults
}

// failing lets spills fail.
func (in *injector) failing(s storeshell.Spiller) storeshell.Spiller {
	if in.cfg.Chaos == nil || !in.cfg.Chaos.Wants(fault.Spill, "") {
		return s
	}
	return failingSpiller{s, in}
}

type failingSpiller struct {
	storeshell.Spiller
	to *injector
}

// Write implements storeshell.Spiller.
func (f failingSpiller) Write(items []spill.Item, done func([]spill.Location, error)) {
	d := f.to.cfg.Chaos.Ask(f.to.life, fault.Site{Kind: fault.Spill}, fault.Subject{PID: os.Getpid()})
	if d.Do != fault.Fail {
		f.Spiller.Write(items, done)
		return
	}
	var err error = errs.New(errs.CodeOutOfDisk, "chaos: injected failure of a spill")
	if d.Err != nil {
		err = d.Err
	}
	f.to.work.Go(func() { done(nil, err) }) // as a writer would, not in the store's step
}

// ofSession are those of a client's messages.
func (in *injector) ofSession(s *session) *faulty {
	if in.cfg.Chaos == nil || !in.cfg.Chaos.Wants(fault.Message, "") && !in.cfg.Chaos.Wants(fault.Create, "") {
		return nil
	}
	return &faulty{to: in, s: s}
}

func (f *faulty) ask(ctx context.Context, k fault.Kind, name string) fault.Decision {
	if !f.to.cfg.Chaos.Wants(k, name) || f.s.system {
		return fault.Decision{}
	}
	who := fault.Subject{PID: int(f.s.pid), Wired: !f.s.IsLocal()}
	who.Worker = who.Wired && f.s.role == wire.RoleWorker
	return f.to.cfg.Chaos.Ask(ctx, fault.Site{Kind: k, Name: name}, who)
}

// incoming passes on what the client says. A late message holds up what follows it, as one that is slow to arrive; a dropped one ends the
// connection. A client in this process does not wait meanwhile, no more than one that has written to a socket.
func (f *faulty) incoming(ctx context.Context, msgs []wire.Msg) error {
	if f.s.IsLocal() {
		return f.fromLocal(ctx, msgs)
	}
	rest, d, err := f.take(ctx, msgs, false)
	for len(rest) > 0 && err == nil {
		fault.Sleep(f.to.delays, f.to.cfg.Chaos, d)
		rest, d, err = f.take(ctx, rest, true)
	}
	return err
}

func (f *faulty) fromLocal(ctx context.Context, msgs []wire.Msg) error {
	f.inMu.Lock()
	if f.late {
		f.in = append(f.in, msgs...)
		f.inMu.Unlock()
		return nil
	}
	f.inMu.Unlock()
	rest, d, err := f.take(ctx, msgs, false)
	if len(rest) == 0 || err != nil {
		return err
	}
	f.inMu.Lock()
	f.late, f.in = true, slices.Clone(rest)
	f.inMu.Unlock()
	f.to.work.Go(func() { f.arrive(d) })
	return nil
}

// arrive passes on what is late and what came behind it, until nothing is.
func (f *faulty) arrive(d time.Duration) {
	f.inMu.Lock()
	defer f.inMu.Unlock()
	for decided := true; len(f.in) > 0; {
		batch := f.in
		f.in = nil
		f.inMu.Unlock()
		fault.Sleep(f.to.delays, f.to.cfg.Chaos, d)
		rest, late, err := f.take(f.to.life, batch, decided)
		f.inMu.Lock()
		if err != nil {
			break // the node stops
		}
		d, decided = late, len(rest) > 0
		f.in = append(slices.Clone(rest), f.in...)
	}
	f.late = false
}

// take passes messages on as the plan says, up to one that is late: it is the first of the rest. decided: the first of msgs was, and is not any more.
func (f *faulty) take(ctx context.Context, msgs []wire.Msg, decided bool) (rest []wire.Msg, late time.Duration, err error) {
	from := 0
	pass := func(to int) error {
		some := slices.Clone(msgs[from:to])
		from = to
		if len(some) == 0 {
			return nil
		}
		turn, err := f.to.router.deliver(ctx, f.s, some, true, false)
		if turn != nil {
			turn()
		}
		return err
	}
	for i, m := range msgs {
		var d fault.Decision
		if (i > 0 || !decided) && !f.spares(m) {
			d = f.ask(ctx, fault.Message, m.Kind().String())
		}
		switch d.Do {
		case fault.Delay:
			return msgs[i:], d.For, pass(i)
		case fault.Drop:
			if err := pass(i); err != nil {
				return nil, 0, err
			}
			return nil, 0, dropped(m)
		case fault.Duplicate:
			if err := pass(i + 1); err != nil {
				return nil, 0, err
			}
			from = i // once more
		}
		if c, ok := m.(*wire.Create); ok && f.refuse(ctx, c) {
			if err := pass(i); err != nil {
				return nil, 0, err
			}
			from = i + 1
		}
	}
	return nil, 0, pass(len(msgs))
}

// spares tells whether a message has no faults of its own: what is said of straight calls in one process. It is late with what is before it.
func (f *faulty) spares(m wire.Msg) bool { return f.s.IsLocal() && route.OfStraightCalls(m) }

func dropped(m wire.Msg) *errs.Error {
	return errs.New(errs.CodeDisconnected, "chaos: a %v was dropped, and the connection cut there", m.Kind())
}

// refuse answers a create that is to fail.
func (f *faulty) refuse(ctx context.Context, m *wire.Create) bool {
	d := f.ask(ctx, fault.Create, "")
	if d.Do != fault.Fail {
		return false
	}
	err := d.Err
	if err == nil {
		err = errs.New(errs.CodeStoreFull, "chaos: injected failure of a create of %d bytes", m.Size)
	}
	f.s.Push(&wire.Created{Req: m.Req, ID: m.ID, Err: err})
	f.s.Flush()
	return true
}

// push is Push of the session, in order: what follows a late message waits for it.
func (f *faulty) push(m wire.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.queue = append(f.queue, m)
		return
	}
	f.sendLocked(m)
}

// sendLocked sends one message as the plan says.
func (f *faulty) sendLocked(m wire.Msg) {
	if f.closed || f.spares(m) {
		f.s.Outlet.Push(m)
		return
	}
	d := f.ask(f.s.done, fault.Message, m.Kind().String())
	switch d.Do {
	case fault.Delay:
		f.queue = append(f.queue, m)
		f.timer = time.AfterFunc(d.For, f.resume)
		return
	case fault.Drop:
		if out, ok := f.s.Outlet.(*outlet.Socket); ok {
			out.Cut(dropped(m))
		}
		return
	case fault.Duplicate:
		f.s.Outlet.Push(m)
	}
	f.s.Outlet.Push(m)
}

// resume sends what was late, and what waited behind it.
func (f *faulty) resume() {
	f.mu.Lock()
	f.drainLocked()
	f.mu.Unlock()
	f.s.Flush()
}

func (f *faulty) drainLocked() {
	queue := f.queue
	f.queue, f.timer = nil, nil
	for i, m := range queue {
		switch {
		case i == 0:
			f.s.Outlet.Push(m)
		case f.timer != nil:
			f.queue = append(f.queue, m)
		default:
			f.sendLocked(m)
		}
	}
}

// close lets go what is late: the client is about to be gone.
func (f *faulty) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
		f.drainLocked()
	}
}

// Push queues a message for the client.
func (s *session) Push(m wire.Msg) {
	if s.faults != nil {
		s.faults.push(m)
		return
	}
	s.Outlet.Push(m)
}

// Close ends the way to the client.
func (s *session) Close() {
	if s.faults != nil {
		s.faults.close()
	}
	s.Outlet.Close()
}
