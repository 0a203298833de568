package shell

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"mobula/internal/direct"
	"mobula/internal/errs"
)

// heard is what a mailbox tells its user.
type heard struct {
	box *Mailbox

	mu    sync.Mutex
	notes []string // guarded by mu
	done  []string // guarded by mu: those that were handed over
}

func (h *heard) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, fmt.Sprintf(format, args...))
}

func (h *heard) Answered(f direct.HostEffect) {
	switch {
	case f.Do == direct.SayLast:
		h.note("last")
	case f.Outcome != nil && f.Outcome.Err != nil:
		h.note("%d failed", f.No)
	default:
		h.note("%d is %v", f.No, f.Outcome)
	}
}
func (h *heard) TellOwner(direct.HostEffect)              {}
func (h *heard) NotHere(direct.HostEffect)                {}
func (h *heard) Fallen(direct.HostEffect)                 { h.note("fallen") }
func (h *heard) Begun(direct.HostEffect)                  {}
func (h *heard) Interrupt(direct.HostEffect)              { h.note("interrupt") }
func (h *heard) Ran(*direct.Incoming)                     {}
func (h *heard) Panicked(event string, reason any, _ int) { h.note("%s: %v", event, reason) }
func (h *heard) HandOver() {
	h.box.Tell(direct.Acked{Channel: 9, UpTo: 100}) // it has no lock
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done, h.notes = append(h.done, h.notes...), nil
}

// listening is a mailbox with a channel of no link, 9. end has its goroutines end.
func listening(run Run) (h *heard, running *atomic.Int64) {
	h, running = new(heard), new(atomic.Int64)
	h.box = NewMailbox(Config{HostConfig: direct.HostConfig{Groups: []int{1}, Unread: 4096}, Run: run, Up: h, Spawn: func(f func()) bool {
		running.Add(1)
		go func() {
			defer running.Add(-1)
			f()
		}()
		return true
	}})
	h.box.Tell(direct.Linked{Channel: 9})
	return h, running
}

// What Run has filled in counts, though it ends its goroutine: the instance goes on. What was noted is handed over in order, without a lock, and goroutines of a closed
// mailbox end.
func TestWhatRunFillsInCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, running := listening(func(in *direct.Incoming, f *direct.Finished) {
			f.Outcome = &direct.Outcome{Err: errs.New(errs.CodePanic, "no")}
			if in.Payload.(int) == 2 {
				f.Panicked = true
			}
			runtime.Goexit()
		})
		var calls []*direct.Incoming
		for i := range 4 {
			calls = append(calls, &direct.Incoming{Payload: i})
		}
		h.box.Arrive(9, calls)
		synctest.Wait()
		want := []string{"1 failed", "2 failed", "fallen", "3 failed", "4 is <nil>", "last"}
		if h.mu.Lock(); !slices.Equal(h.done, want) || len(h.notes) != 0 {
			t.Errorf("its user has heard %q, and %q later", h.done, h.notes)
		}
		h.mu.Unlock()
		h.box.Close()
		synctest.Wait()
		if n := running.Load(); n != 0 {
			t.Errorf("%d goroutines run", n)
		}
	})
}

// A mailbox that is closed while a call runs ends the goroutine when the call has ended.
func TestAClosedMailboxKeepsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan bool)
		h, running := listening(func(_ *direct.Incoming, f *direct.Finished) {
			<-goOn
			f.Outcome = new(direct.Outcome)
		})
		h.box.Arrive(9, []*direct.Incoming{{}, {}})
		h.box.Tell(direct.Stopping{})
		h.box.Close()
		synctest.Wait()
		if want := []string{"1 is <nil>", "interrupt", "2 is <nil>", "last"}; !slices.Equal(h.done, want) {
			t.Errorf("its user has heard %q", h.done)
		}
		close(goOn)
		synctest.Wait()
		if n := running.Load(); n != 0 {
			t.Errorf("%d goroutines run", n)
		}
	})
}
