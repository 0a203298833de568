package graph

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"
)

// started makes a world with workers of the given threads, and starts it.
func started(t *testing.T, b *builder, policy Policy, threads ...int) *world {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Policy = policy
	w := newWorld(t, b.graph(t), cfg)
	for _, n := range threads {
		w.join(n)
	}
	w.step(Start{})
	return w
}

func (w *world) state(key string, want State) {
	w.t.Helper()
	if got := w.c.State(w.key(key)); got != want {
		w.fatalf("%s is %v, not %v", key, got, want)
	}
}

// run runs a task on the worker it was sent to.
func (w *world) run(key string) {
	w.t.Helper()
	w.settleCopies()
	t := w.key(key)
	id := w.where(t)
	if id < 0 {
		w.fatalf("%s was sent nowhere, it is %v", key, w.c.State(t))
	}
	w.done(id, t, 100)
}

func TestIntermediatesAreFreedWithTheirLastDependent(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.add("b", "a")
	b.add("c", "a")
	b.add("d", "b", "c")
	b.add("unasked", "a")
	b.want("d", "b")
	w := started(t, b, Both, 1)
	w.state("unasked", Forgotten)
	w.run("a")
	w.run("b")
	w.state("a", Memory)
	w.run("c")
	w.state("a", Released)
	w.run("d")
	w.state("c", Released)
	w.state("b", Memory) // wanted
	if w.finished != 1 || w.results[w.key("d")] != 1 || w.results[w.key("b")] != 1 {
		t.Errorf("finished %d times, results %v", w.finished, w.results)
	}
	w.step(Want{Tasks: []int32{w.key("b")}, Off: true})
	w.state("b", Released) // d may need it again
	w.step(Want{Tasks: []int32{w.key("d")}, Off: true})
	for _, k := range []string{"a", "b", "c", "d"} {
		w.state(k, Forgotten)
	}
	if len(w.workers[0].store) != 0 || w.c.Bytes() != 0 {
		t.Errorf("%v is still stored", w.workers[0].store)
	}
	w.step(Want{Tasks: []int32{w.key("a")}})
	if f := w.failures[w.key("a")]; f.Err != ErrForgotten {
		t.Errorf("what is forgotten is wanted: %+v", f)
	}
}

func TestALostResultIsMadeAgainWithWhatItNeeds(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.add("b", "a")
	b.add("c", "b")
	b.want("b", "c")
	w := started(t, b, Both, 1)
	w.run("a")
	w.run("b")
	w.state("a", Released)
	w.kill(0, false)
	w.state("a", NoWorker)
	w.state("b", Waiting)
	w.join(1)
	w.finish()
	if w.results[w.key("b")] != 2 || w.c.State(w.key("c")) != Memory || w.c.Counters().Lost != 1 {
		t.Errorf("results %v, %+v", w.results, w.c.Counters())
	}
}

func TestWhatWorkersHoldBeforeTheStartIsNotMadeAgain(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.add("b", "a")
	b.add("c", "b")
	b.want("c", "b")
	w := newWorld(t, b.graph(t), DefaultConfig())
	for _, id := range []WorkerID{w.join(1), w.join(1)} {
		for _, k := range []string{"a", "b"} {
			w.workers[id].store[w.key(k)] = true
			w.step(Holds{Task: w.key(k), Worker: id, Bytes: 7})
		}
	}
	w.kill(0, false)
	w.step(Start{})
	w.state("a", Released)
	w.state("c", Processing)
	if w.results[w.key("b")] != 1 || w.workers[1].store[w.key("a")] {
		t.Errorf("results %v, stored %v", w.results, w.workers[1].store)
	}
	w.workers[1].store[w.key("a")] = true
	w.step(Holds{Task: w.key("a"), Worker: 1, Bytes: 7}) // too late
	if w.workers[1].store[w.key("a")] {
		t.Error("a result that nobody needs is kept")
	}
}

func TestATaskThatKillsWorkersFailsWithItsName(t *testing.T) {
	for _, deaths := range []int{2, 3} {
		b := &builder{}
		b.add("bad")
		b.add("good")
		b.add("end", "bad", "good")
		b.want("end", "good")
		w := started(t, b, Both, 2)
		for range deaths {
			id := w.where(w.key("bad"))
			w.begin(id, w.key("bad")) // good is sent there too and has not begun
			w.kill(id, true)
			w.join(2)
		}
		w.finish()
		f, failed := w.failures[w.key("end")]
		if failed != (deaths == 3) {
			t.Fatalf("%d deaths: failed %v", deaths, failed)
		}
		var killed *KilledError
		if failed && (!errors.As(f.Err, &killed) || killed.Key != "bad" || killed.Deaths != 3 || len(f.Chain) != 2 || !strings.Contains(f.Err.Error(), `"bad"`)) {
			t.Errorf("failed with %v along %v", f.Err, f.Chain)
		}
		w.state("good", Memory)
	}
}

func TestAWorkerThatLeavesChargesNobody(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.want("a")
	w := started(t, b, Both, 1)
	for range 10 {
		id := w.where(w.key("a"))
		w.begin(id, w.key("a"))
		w.kill(id, false)
		w.join(1)
	}
	w.finish()
	w.state("a", Memory)
}

func TestWhereNobodyKnowsWhatRanAllAreCharged(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.add("b")
	b.want("a", "b")
	w := started(t, b, Both, 2)
	for range 4 {
		id := w.where(w.key("a"))
		delete(w.workers, id)
		w.step(WorkerLeft{Worker: id, Killed: true})
		w.join(2)
	}
	w.state("a", Erred)
	w.state("b", Erred)
}

func TestRetriesOfAnAnnotation(t *testing.T) {
	b := &builder{}
	b.add("a").Ann = &Annotations{Retries: 2}
	b.add("b", "a")
	b.want("b")
	w := started(t, b, Both, 1)
	for range 2 {
		w.fail(0, w.key("a"), true)
		w.state("a", Processing)
	}
	w.fail(0, w.key("a"), true)
	w.state("a", Erred)
	if f := w.failures[w.key("b")]; f.Err != errBroken || len(f.Chain) != 2 {
		t.Errorf("failed with %+v", f)
	}
	w = started(t, b, Both, 1)
	w.fail(0, w.key("a"), false) // not retriable
	w.state("a", Erred)
}

func TestCancel(t *testing.T) {
	b := &builder{}
	b.add("a")
	b.add("b", "a")
	b.add("c", "b")
	b.add("other")
	b.want("c", "other")
	w := started(t, b, Both, 4)
	w.step(Cancel{Tasks: []int32{w.key("b")}})
	if f := w.failures[w.key("c")]; f.Err != ErrCancelled {
		t.Errorf("failed with %+v", f)
	}
	w.state("a", Released) // nobody needs it: it was stopped
	w.state("other", Processing)
	w.step(Cancel{})
	w.state("other", Erred)
	if w.finished != 1 || len(w.workers[0].tasks) != 0 {
		t.Errorf("finished %d times, %v is left", w.finished, w.workers[0].tasks)
	}
}

func TestRestrictions(t *testing.T) {
	b := &builder{}
	b.add("here").Ann = &Annotations{Workers: []string{"w1"}}
	b.add("soft").Ann = &Annotations{Workers: []string{"nowhere"}, AllowOthers: true}
	b.add("hard").Ann = &Annotations{Workers: []string{"w9"}}
	b.add("gpu").Ann = &Annotations{Resources: map[string]int64{"gpu": 2}}
	b.want("here", "soft", "hard", "gpu")
	w := started(t, b, Both, 1, 1)
	if id := w.where(w.key("here")); id != 1 {
		t.Errorf("here is on %d", id)
	}
	w.state("soft", Processing)
	w.state("hard", NoWorker)
	w.state("gpu", NoWorker)
	w.joinAs(WorkerJoined{Name: "w2", Threads: 1, Resources: map[string]int64{"gpu": 1}})
	w.state("gpu", NoWorker)
	id := w.joinAs(WorkerJoined{Name: "w9", Threads: 1, Resources: map[string]int64{"gpu": 2}})
	if w.where(w.key("gpu")) != id || w.where(w.key("hard")) != id {
		t.Errorf("gpu on %d, hard on %d", w.where(w.key("gpu")), w.where(w.key("hard")))
	}
}

func TestPause(t *testing.T) {
	b := &builder{}
	b.layer("x", 6, nil)
	b.add("end", b.keys()...)
	b.want("end")
	w := started(t, b, Both, 1, 1)
	w.step(Pause{Worker: 0})
	w.step(Pause{Worker: 1})
	for _, k := range []string{"('x', 0)"} {
		w.state(k, Processing)
	}
	w.finish()
	if w.finished != 0 {
		t.Fatal("finished on paused workers")
	}
	w.step(Resume{Worker: 1})
	w.finish()
	if w.finished != 1 {
		t.Fatalf("%v", w.c.count)
	}
}

// TestSecede lets a task wait for others of its graph on the only thread.
func TestSecede(t *testing.T) {
	for _, p := range []Policy{Both, Withhold} {
		b := &builder{}
		b.layer("outer", 1, nil)
		b.layer("inner", 9, nil)
		b.want(b.keys()...)
		w := started(t, b, p, 1)
		outer := w.runnable(0)[0]
		w.begin(0, outer)
		w.step(LongRunning{Task: outer, Attempt: w.workers[0].tasks[outer]})
		for range 9 {
			next := w.runnable(0)
			next = next[1:] // outer is the first
			if len(next) == 0 {
				t.Fatalf("%v: nothing is sent while a task has seceded", p)
			}
			w.done(0, next[0], 1)
		}
		w.step(Rejoined{Task: outer, Attempt: w.workers[0].tasks[outer]})
		w.done(0, outer, 1)
		if w.finished != 1 {
			t.Errorf("%v: %v", p, w.c.count)
		}
	}
}

// TestRootish checks Dask's threshold, and beyond it what Dask's users found missing: a mark comes first (dask/distributed#8934),
// and tasks without inputs are roots however few there are (#7273, #7274), even one alone in its group (#8133).
func TestRootish(t *testing.T) {
	sizes := func(tasks, inputs, groups int) *builder {
		b := &builder{}
		var in []string
		for g := range groups {
			in = append(in, b.layer("in"+strings.Repeat("x", g), inputs/groups, nil)...)
		}
		b.want(b.layer("group", tasks, func(int) []string { return in })...)
		return b
	}
	for _, c := range []struct {
		name                           string
		threads, tasks, inputs, groups int
		dask, both                     bool
	}{
		{"large", 4, 9, 0, 0, true, true},
		{"twice the threads", 4, 8, 0, 0, false, true},
		{"between once and twice", 4, 6, 0, 0, false, true},
		{"few", 4, 1, 0, 0, false, true},
		{"four inputs", 4, 9, 4, 1, true, true},
		{"four inputs of four groups", 4, 9, 4, 4, true, true},
		{"five inputs", 4, 99, 5, 1, false, false},
		{"five groups", 4, 99, 5, 5, false, false},
		{"few with an input", 4, 8, 1, 1, false, false},
	} {
		b := sizes(c.tasks, c.inputs, c.groups)
		for p, want := range map[Policy]bool{Withhold: c.dask, Both: c.both} {
			w := started(t, b, p, c.threads)
			if got := w.c.isRoot(w.key("('group', 0)")); got != want {
				t.Errorf("%s, %v: root %v", c.name, p, got)
			}
		}
	}
	// Each key a group of its own: Dask's saturation then bounds nothing, however many there are.
	b := &builder{}
	for i := range 20 {
		b.want(b.layer(strings.Repeat("x", i+1), 1, nil)...)
	}
	if sent := len(started(t, b, Withhold, 4).workers[0].tasks); sent != 20 {
		t.Errorf("%d of 20 tasks with keys of their own were sent at once, Dask would send all", sent)
	}
	if sent := len(started(t, b, Both, 4).workers[0].tasks); sent != 4 && sent != 5 {
		t.Errorf("%d of 20 tasks with keys of their own were sent at once to four threads", sent)
	}
	b = &builder{}
	in := b.layer("in", 9, nil)
	b.add("marked", in...).Producer = true
	b.add("plain", in...)
	x := b.add("restricted")
	x.Producer, x.Ann = true, &Annotations{Workers: []string{"w0"}}
	b.want("marked", "plain", "restricted")
	w := started(t, b, Withhold, 4)
	if !w.c.isRoot(w.key("marked")) || w.c.isRoot(w.key("plain")) || w.c.isRoot(w.key("restricted")) {
		t.Error("the mark does not come first, or restrictions do not come before it")
	}
}

func TestSlots(t *testing.T) {
	for _, c := range []struct {
		saturation float64
		threads    int
		want       int
	}{{1.1, 1, 2}, {1.1, 2, 3}, {1.1, 10, 11}, {1, 4, 4}, {0.5, 4, 2}, {0, 4, 1}, {2, 4, 8}, {math.Inf(1), 4, 50}} {
		b := &builder{}
		b.want(b.layer("x", 50, nil)...)
		cfg := DefaultConfig()
		cfg.Policy, cfg.Saturation = Withhold, c.saturation
		w := newWorld(t, b.graph(t), cfg)
		w.join(c.threads)
		w.step(Start{})
		if got := len(w.workers[0].tasks); got != c.want {
			t.Errorf("%v of %d threads: %d sent, not %d", c.saturation, c.threads, got, c.want)
		}
	}
}

func TestLocality(t *testing.T) {
	b := &builder{}
	b.add("small").Ann = &Annotations{Workers: []string{"w0"}}
	b.add("large").Ann = &Annotations{Workers: []string{"w1"}}
	b.add("both", "small", "large")
	b.want("both")
	w := started(t, b, Both, 1, 1)
	w.done(0, w.key("small"), 10)
	w.done(1, w.key("large"), 1000)
	if id := w.where(w.key("both")); id != 1 || w.moved != 10 {
		t.Errorf("on %d, %d bytes move", id, w.moved)
	}
}

func TestConfigSaysEverythingThatIsWrong(t *testing.T) {
	err := Config{Policy: 9, Saturation: -1, AllowedFailures: -1, Budget: -1}.Validate()
	for _, word := range []string{"policy", "saturation", "allowed failures", "bandwidth", "budget"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in %v", word, err)
		}
	}
	cfg := DefaultConfig()
	for n, ok := range map[int]bool{255: true, 256: false} { // a task's counters are small
		cfg.AllowedFailures = n
		if err := cfg.Validate(); (err == nil) != ok {
			t.Errorf("%d allowed failures: %v", n, err)
		}
		if _, err := New([]Task{{Key: "a", Ann: &Annotations{Retries: n}}}, nil, []int32{0}); (err == nil) != ok {
			t.Errorf("%d retries: %v", n, err)
		}
	}
	if _, err := NewCore(nil, Config{}); err == nil {
		t.Error("a core is made of a wrong configuration")
	}
}

func TestPoliciesHaveNames(t *testing.T) {
	for p, want := range map[Policy]string{Both: "both", Withhold: "withhold", CoAssign: "co-assign", 9: "invalid"} {
		if p.String() != want {
			t.Errorf("%d is called %q", p, p.String())
		}
	}
}

func TestStateIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(task{}) + unsafe.Sizeof(replica{}); n > 96 {
		t.Errorf("a task with its copy takes %d bytes", n)
	}
}
