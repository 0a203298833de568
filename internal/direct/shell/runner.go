package shell

import (
	"mobula/internal/direct"
	"mobula/internal/errs"
)

// runner is a goroutine of a mailbox. It parks when there is nothing to run.
type runner struct {
	m    *Mailbox
	next *direct.Incoming // guarded by m.mu while it is parked
	wake chan struct{}    // capacity 1; it ends if there is nothing to run then
	rest bool             // it has parked, and waits for that
	f    direct.Finished  // of the call in hand
	also *runner          // of those to be woken, the next one
}

// start has a call run: by the runner that has just ended one, by one that is parked, or by a new one. The lock is held.
func (m *Mailbox) start(in *direct.Incoming) {
	m.idle = 0
	if r := m.runner; r != nil && r.next == nil {
		r.next = in
		return
	}
	if n := len(m.parked); n > 0 {
		r := m.parked[n-1]
		m.parked[n-1] = nil
		m.parked = m.parked[:n-1]
		r.next, r.also = in, m.after.wake
		m.after.wake = r
		return
	}
	m.cfg.Spawn((&runner{m: m, next: in, wake: make(chan struct{}, 1)}).loop)
}

// loop runs calls. Where a call ends the goroutine, another takes its place.
func (r *runner) loop() {
	over := false
	defer func() {
		if !over {
			r.m.cfg.Spawn(r.loop)
		}
	}()
	for {
		if r.rest { // what is next may be there already, and the token is on its way
			<-r.wake
			r.rest = false
		}
		if r.next == nil {
			over = true
			return
		}
		r.run()
	}
}

// run runs the call in hand.
func (r *runner) run() {
	in, ran := r.next, false
	r.f = direct.Finished{}
	defer func() {
		if !ran { // Run has panicked, or called runtime.Goexit
			if p := recover(); r.f.Outcome == nil || p != nil {
				err := errs.New(errs.CodePanic, "call %v has ended its goroutine: %v", in.ID, p)
				r.f = direct.Finished{Outcome: &direct.Outcome{Err: err}, Panicked: true}
			}
			r.finish(in)
		}
	}()
	r.m.cfg.Run(in, &r.f)
	ran = true
	r.finish(in)
}

// finish tells the core, and takes the next call or parks.
func (r *runner) finish(in *direct.Incoming) {
	m := r.m
	r.f.Call, r.f.Bytes = in, r.f.Outcome.Bytes
	m.mu.Lock()
	m.cfg.Up.Ran(in)
	r.next, m.runner = nil, r
	m.step(&r.f)
	r.f = direct.Finished{}
	if m.runner = nil; r.next == nil {
		m.postQuiet()
	}
	if r.next == nil && !m.closed {
		r.rest = true
		m.parked = append(m.parked, r)
	}
	later := m.takeAfter()
	m.mu.Unlock()
	later.do()
}

// Sweep sends answers that were held back behind a call that takes long, and ends the goroutines of a mailbox that had nothing to run for so many sweeps.
func (m *Mailbox) Sweep(sweeps int) {
	m.mu.Lock()
	m.postQuiet()
	if m.idle++; m.idle >= sweeps {
		m.endParked()
	}
	later := m.takeAfter()
	m.mu.Unlock()
	later.do()
}

// Close has the goroutines of an instance that has ended end, each when its call has.
func (m *Mailbox) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.endParked()
}

func (m *Mailbox) endParked() {
	for _, r := range m.parked {
		r.wake <- struct{}{}
	}
	m.parked = nil
}
