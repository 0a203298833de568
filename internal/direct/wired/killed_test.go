package wired

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/wire"
)

func init() {
	roles["host"] = func(e *os.File) {
		var at, n int
		_, _ = fmt.Sscan(roleArg, &at, &n) // 0 is none
		groups := make([]int, max(1, n))
		for i := range groups {
			groups[i] = 1
		}
		t := &inChild{}
		h := newHosts(t, groups, func(k *wire.Call) *direct.Outcome {
			if at > 0 && int(k.Spec.Seq) == at && k.Group == 0 {
				if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
					panic(err)
				}
				select {} // between begin and answer
			}
			return echo(k)
		})
		<-h.open(e, 1).Done()
	}
	roles["caller"] = func(e *os.File) {
		var at int
		_, _ = fmt.Sscan(roleArg, &at)
		u := newCalls(&inChild{})
		u.ways <- e
		for seq := uint64(1); ; seq++ {
			a := u.call(1, seq, make([]byte, 100))
			if seq%8 == 0 {
				a.get(u.t)
			}
			if at > 0 && int(seq) == at {
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
				select {}
			}
		}
	}
}

// inChild is the test of a process that is none: what fails there ends it.
type inChild struct{ testing.TB }

func (*inChild) Helper()                   {}
func (*inChild) Error(args ...any)         { panic(args) }
func (*inChild) Errorf(f string, _ ...any) { panic(f) }
func (*inChild) Fatal(args ...any)         { panic(args) }
func (*inChild) Fatalf(f string, _ ...any) { panic(f) }

// The actor's process is killed while its n-th call runs. What has begun is known exactly: the n-th, and of the other group all that were answered. Of the others none
// has.
func TestTheActorsProcessIsKilled(t *testing.T) {
	const most = 40
	for _, at := range []int{1, 2, 3, 7, 20, most} {
		u := newCalls(t, "others")
		from, to := made(t)
		u.ways <- from
		child(t, fmt.Sprint("host ", at, " 2"), to)
		others := u.call(2, 1000, nil, func(a *asked) { a.InGroup = "others" })
		others.gives(t, 1000)
		var all []*asked
		for seq := uint64(1); seq <= most; seq++ {
			all = append(all, u.call(1, seq, make([]byte, 10*at)))
		}
		x := u.x.Load()
		close(u.ways)
		ended(t, "the channel", x.Done())
		if got := x.Begun(); len(got) != 2 || got[0] != uint64(at) || got[1] != 1 {
			t.Errorf("killed at call %d, %v have begun", at, got)
		}
		for i, a := range all {
			o := a.get(t)
			switch seq := i + 1; {
			case seq < at && o.Err == nil && number(resultOf(o)) == uint64(seq): // its answer was written
			case seq <= at && o.Err != nil && o.Err.Code == errs.CodeActorUnavailable:
			case seq > at && o.Err != nil && o.Err.Code == errs.CodeActorDied: // it waits for the next instance, and there is none
			default:
				t.Errorf("killed at call %d, call %d has come to %+v", at, seq, o)
			}
		}
		u.p.Close()
	}
}

// The process that calls is killed. What it had sent is run, in order, each once; and the channel ends.
func TestTheCallingProcessIsKilled(t *testing.T) {
	for _, at := range []int{1, 2, 9, 40, 200} {
		var ran []uint64
		h := newHosts(t, []int{1}, func(k *wire.Call) *direct.Outcome {
			ran = append(ran, k.Spec.Seq) // one at a time
			return echo(k)
		})
		from, to := made(t)
		x := h.open(to, 1)
		child(t, fmt.Sprint("caller ", at), from)
		ended(t, "the channel", x.Done())
		h.box.Tell(direct.Stopping{Drain: true})
		testkit.Eventually(t, "the mailbox is empty", h.last.Load)
		if len(ran) > at || len(ran) < at/8*8 {
			t.Errorf("killed after call %d, %d have run", at, len(ran))
		}
		for i, seq := range ran {
			if int(seq) != i+1 {
				t.Fatalf("killed after call %d, call %d has run as the %d-th", at, seq, i+1)
			}
		}
		h.box.Close()
	}
}

// A process is killed at any time, whatever it does: the other end hears of it once, after what was said.
func TestAProcessIsKilledAnyTime(t *testing.T) {
	for _, seed := range testkit.Seeds(t, 10) {
		u := newCalls(t)
		from, to := made(t)
		u.ways <- from
		cmd := child(t, "host", to)
		stop := 1 + seed%300
		var all []*asked
		for seq := uint64(1); seq <= 600; seq++ {
			if all = append(all, u.call(1, seq, nil)); seq == stop {
				all[seq/2].get(t)
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				close(u.ways)
			}
		}
		x := u.x.Load()
		ended(t, "the channel", x.Done())
		begun, failed := x.Begun()[0], false
		for i, a := range all {
			o := a.get(t)
			if failed = failed || o.Err != nil; failed && o.Err == nil {
				t.Fatalf("call %d has an answer, and one before has none", i+1)
			}
			if unavailable := o.Err != nil && o.Err.Code == errs.CodeActorUnavailable; uint64(i+1) > begun && (o.Err == nil || unavailable) || uint64(i+1) <= begun && o.Err != nil && !unavailable {
				t.Fatalf("of %d calls that have begun, the %d-th has come to %+v", begun, i+1, o)
			}
		}
		u.p.Close()
	}
}

// resultOf is the number that a call has come to, encoded; nil: none.
func resultOf(o *direct.Outcome) []byte {
	if v, ok := o.Value.(*talk.Answer); ok && len(v.Results) == 1 {
		return v.Results[0].Value.Data
	}
	return nil
}
