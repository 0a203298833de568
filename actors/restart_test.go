package actors

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"mobula/internal/errs"
)

func TestRedeliveredOnceToANewCore(t *testing.T) {
	log := &events{}
	s := system(t, Config{OnEvent: log.add})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	post(t, r, ev{id: 1}, ev{id: 2, crash: 1}, ev{id: 3})
	barrier(t, r)
	want(t, "stepped", rec.ids(), []int{1, 2, 3, -1})
	want(t, "first core", rec.cores[0], []int{1})
	want(t, "second core", rec.cores[1], []int{2, 3, -1})
	if st := rec.starts[1]; st.Restart != 1 || !errors.Is(st.Reason, errs.ErrPanic) {
		t.Errorf("second start: %+v", st)
	}
	var pe *PanicError
	if !errors.As(rec.starts[1].Reason, &pe) || pe.Phase != "Step" || pe.Message != "actors.ev" || !strings.Contains(pe.Stack, "(*core).Step") {
		t.Errorf("reason %+v; want phase Step, the message's type and the core's stack", pe)
	}
	if e := log.of(EventRestarted); len(e) != 1 || e[0].Path != "root/a" || e[0].Component != "script" {
		t.Errorf("restart events: %+v", e)
	}
	if n := s.Restarts()["script"]; n != 1 {
		t.Errorf("restarts by kind: %d", n)
	}
	if tree := s.Tree(); len(tree) != 1 || tree[0].Restarts != 1 || tree[0].Err == nil {
		t.Errorf("tree: %+v", tree)
	}
}

func TestPoisonedAfterTheSecondPanic(t *testing.T) {
	log := &events{}
	s := system(t, Config{OnEvent: log.add})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	post(t, r, ev{id: 1}, ev{id: 2, crash: 9}, ev{id: 3})
	barrier(t, r)
	want(t, "stepped", rec.ids(), []int{1, 3, -1})
	want(t, "poisoned", rec.poison, []int{2})
	if rec.tries[2] != 2 || len(rec.cores) != 3 {
		t.Errorf("deliveries %d, cores %d; want 2 and 3", rec.tries[2], len(rec.cores))
	}
	var po *PoisonError
	if !errors.As(rec.errs[0], &po) || po.Panic.Value != "crash 2" || !errors.Is(rec.errs[0], errs.ErrPanic) {
		t.Errorf("poison error: %v", rec.errs[0])
	}
	if e := log.of(EventPoisoned); len(e) != 1 || !errors.As(e[0].Err, &po) {
		t.Errorf("poison events: %+v", e)
	}
	if i := s.Tree()[0]; i.Poisoned != 1 || i.Restarts != 2 {
		t.Errorf("tree: %+v", i)
	}
}

// A vital message is delivered until a core steps it, before all that is behind it.
func TestAVitalMessageIsNotDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		spec := scriptSpec("a", rec)
		spec.Vital = func(e ev) bool { return e.id == 2 }
		r := spawn(t, s, spec)
		post(t, r, ev{id: 1}, ev{id: 2, crash: 4}, ev{id: 3, crash: 4}, ev{id: 4})
		barrier(t, r)
		want(t, "stepped", rec.ids(), []int{1, 2, 4, -1})
		want(t, "poisoned", rec.poison, []int{3})
		stopTree(t, s)
	})
}

// New is told which message comes again behind what it returns, and on which event of the last New the core before panicked.
func TestNewIsToldWhatBringsCoresDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		rec := newRecording()
		spec := scriptSpec("a", rec)
		inner := spec.New
		spec.New = func(st Start) (Core[ev, eff], []ev, error) {
			c, _, err := inner(st)
			if st.Restart > 0 {
				return c, []ev{{id: 10}, {id: 11, crash: 2}}, err
			}
			return c, nil, err
		}
		r := spawn(t, s, spec)
		post(t, r, ev{id: 1, crash: 2}, ev{id: 2})
		barrier(t, r)
		var got []int
		id := func(e any) int {
			if e == nil {
				return 0
			}
			return e.(ev).id
		}
		for _, st := range rec.starts {
			got = append(got, id(st.Again), id(st.Blamed))
		}
		want(t, "again and blamed", got, []int{0, 0, 1, 0, 1, 11, 1, 11, 0, 0})
		want(t, "poisoned", rec.poison, []int{1})
		stopTree(t, s)
	})
}

// A hook that reports the poisoned message to the component's own next core.
func TestOnPoisonMayPost(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	spec := scriptSpec("a", rec)
	told := make(chan struct{})
	spec.OnPoison = func(self *Ref[ev], e ev, _ error) {
		if err := self.Post(ev{id: 100 + e.id, step: func(*recording) { close(told) }}); err != nil {
			t.Error(err)
		}
		panic("a hook's panic is not the component's")
	}
	r := spawn(t, s, spec)
	post(t, r, ev{id: 1, crash: 2}, ev{id: 2})
	<-told
	want(t, "stepped", rec.ids(), []int{2, 101})
}

func TestNewEventsComeFirst(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	spec := scriptSpec("a", rec)
	inner := spec.New
	spec.New = func(st Start) (Core[ev, eff], []ev, error) {
		c, _, err := inner(st)
		return c, []ev{{id: 1000 + st.Restart, do: []eff{{id: 1000 + st.Restart}}}}, err
	}
	r := spawn(t, s, spec)
	post(t, r, ev{id: 1, crash: 1}, ev{id: 2})
	barrier(t, r)
	want(t, "stepped", rec.ids(), []int{1000, 1001, 1, 2, -1})
	want(t, "effects", rec.effects, []int{1000, 1001})
}

func TestPanicInDo(t *testing.T) {
	for _, tc := range []struct {
		name string
		same func(a, b eff) bool
		want []int
	}{
		{"the new core's effects all run", nil, []int{1, 1, 2, 3}},
		{"with Same those that ran are left out", func(a, b eff) bool { return a.id == b.id }, []int{1, 2, 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := system(t, Config{})
			rec := newRecording()
			spec := scriptSpec("a", rec)
			spec.Same = tc.same
			r := spawn(t, s, spec)
			first := true
			post(t, r, ev{id: 7, do: []eff{{id: 1}, {id: 2, run: func(*Ref[ev]) {
				if first {
					first = false
					panic("in Do")
				}
			}}, {id: 3}}})
			barrier(t, r)
			want(t, "effects", rec.effects, tc.want)
			want(t, "stepped", rec.ids(), []int{7, 7, -1})
			if p := rec.starts[1].Reason.(*PanicError); p.Phase != "Do" {
				t.Errorf("phase %s", p.Phase)
			}
		})
	}
}

func TestPanicInDoTwicePoisons(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	post(t, r, ev{id: 7, do: []eff{{id: 1}, {id: 2, run: func(*Ref[ev]) { panic("in Do") }}, {id: 3}}}, ev{id: 8})
	barrier(t, r)
	want(t, "poisoned", rec.poison, []int{7})
	want(t, "effects", rec.effects, []int{1, 1})
	want(t, "stepped", rec.ids(), []int{7, 7, 8, -1})
}

// A failed commit is tried again before the new core reads what is authoritative.
func TestFlushPanicKeepsWhatWasWritten(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	var buffered, committed []int
	var seenByNew [][]int
	fail := true
	spec := scriptSpec("a", rec)
	inner := spec.New
	spec.New = func(st Start) (Core[ev, eff], []ev, error) {
		seenByNew = append(seenByNew, append([]int(nil), committed...))
		return inner(st)
	}
	spec.Do = func(_ *Ref[ev], f eff) { buffered = append(buffered, f.id) }
	spec.Flush = func() {
		if fail && len(buffered) > 0 {
			fail = false
			panic("disk")
		}
		committed, buffered = append(committed, buffered...), nil
	}
	r := spawn(t, s, spec)
	post(t, r, ev{id: 1, do: []eff{{id: 10}}})
	barrier(t, r)
	barrier(t, r) // the first barrier may share the batch of the flush that fails
	if len(seenByNew) != 2 {
		t.Fatalf("%d cores, want 2", len(seenByNew))
	}
	want(t, "read by the second New", seenByNew[1], []int{10})
	if rec.tries[1] != 1 {
		t.Errorf("event delivered %d times; a flush has no event in hand", rec.tries[1])
	}
}

// What the events before the one that panicked have written is flushed before New.
func TestFlushedBeforeNew(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	flushed, atNew := 0, -1
	spec := scriptSpec("a", rec)
	inner := spec.New
	spec.New = func(st Start) (Core[ev, eff], []ev, error) {
		atNew = flushed
		return inner(st)
	}
	written := 0
	spec.Do = func(*Ref[ev], eff) { written++ }
	spec.Flush = func() { flushed = written }
	r := spawn(t, s, spec)
	gate := make(chan struct{}) // so that both are of one batch
	post(t, r, ev{id: 0, step: func(*recording) { <-gate }}, ev{id: 1, do: []eff{{}, {}}}, ev{id: 2, crash: 1})
	close(gate)
	barrier(t, r)
	if atNew != 2 {
		t.Errorf("New saw %d effects flushed, want 2", atNew)
	}
}

func TestFirstNewFails(t *testing.T) {
	s := system(t, Config{})
	boom := errors.New("no log")
	for name, f := range map[string]func(){"error": func() {}, "panic": func() { panic(boom) }} {
		spec := scriptSpec(name, newRecording())
		spec.New = func(Start) (Core[ev, eff], []ev, error) { f(); return nil, nil, boom }
		if _, err := Spawn(s, spec); !errors.Is(err, boom) || !strings.Contains(err.Error(), "root/"+name) {
			t.Errorf("%s: Spawn gave %v", name, err)
		}
	}
	if tree := s.Tree(); len(tree) != 0 {
		t.Errorf("left in the tree: %+v", tree)
	}
	spawn(t, s, scriptSpec("error", newRecording())) // the name is free again
}

func TestLaterNewFailsAndIsCalledAgain(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	spec := scriptSpec("a", rec)
	inner := spec.New
	spec.New = func(st Start) (Core[ev, eff], []ev, error) {
		switch st.Restart {
		case 1:
			return nil, nil, errors.New("log is busy")
		case 2:
			panic("log is torn")
		}
		return inner(st)
	}
	r := spawn(t, s, spec)
	post(t, r, ev{id: 1, crash: 1}, ev{id: 2})
	barrier(t, r)
	want(t, "stepped", rec.ids(), []int{1, 2, -1})
	if st := rec.starts[1]; st.Restart != 3 || !strings.Contains(st.Reason.Error(), "torn") {
		t.Errorf("start %+v", st)
	}
}

func TestGoexitIsAPanic(t *testing.T) {
	for _, thread := range []bool{false, true} {
		t.Run(fmt.Sprint("thread=", thread), func(t *testing.T) {
			s := system(t, Config{})
			rec := newRecording()
			spec := scriptSpec("a", rec)
			spec.Thread = thread
			r := spawn(t, s, spec)
			post(t, r, ev{id: 1, step: func(rec *recording) {
				if len(rec.cores) == 1 {
					runtime.Goexit()
				}
			}}, ev{id: 2})
			barrier(t, r)
			if !errors.Is(rec.starts[1].Reason, errGoexit) {
				t.Errorf("reason %v", rec.starts[1].Reason)
			}
			want(t, "stepped by the second core", rec.cores[1], []int{1, 2, -1})
		})
	}
}

func TestSpawnRefuses(t *testing.T) {
	s := system(t, Config{})
	ok := func() Spec[ev, eff] { return scriptSpec("a", newRecording()) }
	spawn(t, s, ok())
	for name, change := range map[string]func(*Spec[ev, eff]){
		"name taken":  func(*Spec[ev, eff]) {},
		"no kind":     func(x *Spec[ev, eff]) { x.Kind = "" },
		"no New":      func(x *Spec[ev, eff]) { x.New = nil },
		"bound":       func(x *Spec[ev, eff]) { x.Mailbox = -1 },
		"restarts":    func(x *Spec[ev, eff]) { x.Policy.MaxRestarts = -3 },
		"backoff":     func(x *Spec[ev, eff]) { x.Policy.Backoff = -1 },
		"no strategy": func(x *Spec[ev, eff]) { x.Policy.Strategy = 9 },
	} {
		spec := ok()
		change(&spec)
		if _, err := Spawn(s, spec); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := Supervisor(s, "", "x", Policy{}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("supervisor without kind: %v", err)
	}
}

// An effect without a Do is a bug of the spec: reported as such, by name.
func TestEffectWithoutDo(t *testing.T) {
	s := system(t, Config{})
	rec := newRecording()
	spec := scriptSpec("a", rec)
	spec.Do = nil
	r := spawn(t, s, spec)
	post(t, r, ev{id: 1, do: []eff{{}}})
	barrier(t, r)
	if len(rec.errs) != 1 || !errors.Is(rec.errs[0], errs.ErrInvalid) {
		t.Errorf("poisoned with %v", rec.errs)
	}
}
