package actors

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		r := spawn(t, s, scriptSpec("a", rec))
		begin := time.Now()
		r.After(2*time.Second, ev{id: 2})
		r.After(time.Second, ev{id: 1})
		cancel := r.After(time.Second, ev{id: 3})
		r.After(-time.Second, ev{id: 0})
		cancel()
		cancel()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		want(t, "stepped", rec.ids(), []int{0, 1, 2})
		want(t, "at", rec.times, []int64{begin.UnixNano(), begin.Add(time.Second).UnixNano(), begin.Add(2 * time.Second).UnixNano()})
		if r.m.timers != nil {
			t.Error("timers are left in the list")
		}
		stopTree(t, s)
	})
}

func TestTimersEndWithTheComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		r := spawn(t, s, scriptSpec("a", rec))
		r.After(time.Second, ev{id: 1})
		stopTree(t, s)
		r.After(time.Second, ev{id: 2})
		time.Sleep(time.Minute)
		want(t, "stepped", rec.ids(), nil)
	})
}

// A timer armed in Do belongs to the core: the next core must arm its own. One that
// fired already but was not stepped is gone too. A timer armed from outside stays.
func TestTimersEndWithTheCoreThatArmedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		spec := scriptSpec("a", rec)
		spec.Policy.Backoff = time.Second // the restart comes when the first timer has fired
		r := spawn(t, s, spec)
		arm := func(self *Ref[ev]) {
			self.After(0, ev{id: 10})
			self.After(time.Hour, ev{id: 11})
		}
		hold := func(*recording) { time.Sleep(time.Millisecond) } // 1 waits until 2 is posted, 2 until 10 has fired behind it
		post(t, r, ev{id: 1, step: hold, do: []eff{{run: arm}}}, ev{id: 2, step: hold, crash: 1})
		r.After(2*time.Hour, ev{id: 12})
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		want(t, "stepped", rec.ids(), []int{1, 2, 12})
		stopTree(t, s)
	})
}

// The timer's own event is redelivered like any other.
func TestTimerEventThatPanicsIsRedelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		r := spawn(t, s, scriptSpec("a", rec))
		post(t, r, ev{id: 1, do: []eff{{run: func(self *Ref[ev]) { self.After(time.Second, ev{id: 2, crash: 1}) }}}})
		time.Sleep(time.Minute)
		want(t, "stepped", rec.ids(), []int{1, 2})
		stopTree(t, s)
	})
}
