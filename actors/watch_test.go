package actors

import (
	"testing"
	"testing/synctest"
)

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		watcher := spawn(t, s, scriptSpec("watcher", rec))
		target := spawn(t, s, scriptSpec("target", newRecording()))
		var downs []Down
		notice := func(id int) func(Down) ev {
			return func(d Down) ev { downs = append(downs, d); return ev{id: id} }
		}
		watcher.Watch(target, notice(10))
		cancel := watcher.Watch(target, notice(11))
		watcher.Watch(target, func(Down) ev { panic("a notice's panic harms nobody") })
		cancel()
		// A restart is not a death; events that the target posts before it dies come before the notice.
		post(t, target, ev{id: 1, crash: 1}, ev{id: 2, do: []eff{{run: func(*Ref[ev]) { post(t, watcher, ev{id: 5}) }}}})
		barrier(t, target)
		if err := target.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		watcher.Watch(target, notice(12)) // of the dead: at once
		synctest.Wait()
		want(t, "stepped", rec.ids(), []int{5, 10, 12})
		for _, d := range downs {
			if d.Path != "root/target" || d.Kind != "script" || d.Restarts != 1 || d.Err != nil {
				t.Errorf("notice %+v", d)
			}
		}
		// A notice to a watcher that is gone is dropped.
		other := spawn(t, s, scriptSpec("other", newRecording()))
		watcher.Watch(other, notice(13))
		if err := watcher.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		stopTree(t, s)
	})
}

func TestWatchASupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		watcher := spawn(t, s, scriptSpec("watcher", rec))
		sup, err := Supervisor(s, "sup", "sup", Policy{})
		if err != nil {
			t.Fatal(err)
		}
		spawn(t, sup, scriptSpec("child", newRecording()))
		watcher.Watch(sup, func(d Down) ev { return ev{id: len(d.Path)} })
		if err := sup.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, "stepped", rec.ids(), []int{len("root/sup")})
		want(t, "tree", paths(s), []string{"root/watcher"})
		stopTree(t, s)
	})
}
