package node

import (
	"reflect"
	"testing"

	"mobula/raylet/sched"
	"mobula/wire"
)

func wantOf(class sched.Class, function string, backlog int) sched.Want {
	return sched.Want{Key: sched.ClassKey{Job: 7, Class: class}, Opts: &wire.TaskOptions{Func: function}, Backlog: backlog}
}

// passed checks what a message leads to at a gate.
func passed(t *testing.T, g *programGate, ev sched.Event, on []sched.Event, get ...string) {
	t.Helper()
	gotOn, gotGet := g.pass(ev)
	if !reflect.DeepEqual(gotOn, on) || len(gotGet) != len(get) || len(get) > 0 && !reflect.DeepEqual(gotGet, get) {
		t.Fatalf("%+v: %+v goes on and %q is to come, want %+v and %q", ev, gotOn, gotGet, on, get)
	}
}

// What is wanted waits, in order, for the driver's own program, and for that of its language; the last want of a class counts.
func TestWhatIsWantedWaitsForItsProgram(t *testing.T) {
	g := newProgramGate([]string{wire.LangPython, wire.LangGo})
	if got := g.begin(); !reflect.DeepEqual(got, []string{wire.LangPython}) {
		t.Fatalf("first comes %q", got)
	}
	py, goes, end := wantOf(1, "py:m.f:00", 3), wantOf(2, "math/add", 1), sched.Return{Lease: 4}
	passed(t, g, py, nil)
	passed(t, g, goes, nil, wire.LangGo)
	passed(t, g, end, nil)
	py.Backlog = 9
	passed(t, g, py, nil)
	if got := g.arrived(wire.LangGo); got != nil {
		t.Fatalf("before the driver's own program is here %+v goes on", got)
	}
	if got := g.arrived(wire.LangPython); !reflect.DeepEqual(got, []sched.Event{py, goes, end}) {
		t.Fatalf("then go on %+v", got)
	}
	passed(t, g, goes, []sched.Event{goes})
	passed(t, g, end, []sched.Event{end})
}

func TestAProgramOfAnotherLanguageComesWhenItIsWanted(t *testing.T) {
	g := newProgramGate([]string{wire.LangGo, wire.LangPython})
	g.begin()
	g.arrived(wire.LangGo)
	passed(t, g, wantOf(1, "py:m.f", 0), nil)
	passed(t, g, wantOf(1, "py:m.f", 1), nil, wire.LangPython)
	passed(t, g, wantOf(2, "math/add", 1), []sched.Event{wantOf(2, "math/add", 1)})
	if got := g.arrived(wire.LangPython); !reflect.DeepEqual(got, []sched.Event{wantOf(1, "py:m.f", 1)}) {
		t.Fatalf("then go on %+v", got)
	}
}

// What cannot come is refused to those who want it, and tried again for the next who does.
func TestAProgramThatCannotComeIsTriedAgain(t *testing.T) {
	g := newProgramGate([]string{wire.LangGo, wire.LangPython})
	g.begin()
	passed(t, g, wantOf(1, "math/add", 2), nil)
	passed(t, g, wantOf(2, "math/sub", 0), nil)
	passed(t, g, wantOf(3, "py:m.f", 1), nil, wire.LangPython)
	if got := g.failed(wire.LangPython); !reflect.DeepEqual(got, []sched.Want{wantOf(3, "py:m.f", 1)}) {
		t.Fatalf("%+v are refused", got)
	}
	if got := g.failed(wire.LangGo); !reflect.DeepEqual(got, []sched.Want{wantOf(1, "math/add", 2)}) {
		t.Fatalf("%+v are refused", got)
	}
	passed(t, g, wantOf(2, "math/sub", 0), nil)
	passed(t, g, wantOf(1, "math/add", 5), nil, wire.LangGo)
	if got := g.arrived(wire.LangGo); !reflect.DeepEqual(got, []sched.Event{wantOf(2, "math/sub", 0), wantOf(1, "math/add", 5)}) {
		t.Fatalf("then go on %+v", got)
	}
}

// A function of a language that the job has no program for goes on with the driver's own: the pool has the error.
func TestAWantWithoutAProgramGoesOn(t *testing.T) {
	g := newProgramGate([]string{wire.LangGo})
	g.begin()
	g.arrived(wire.LangGo)
	passed(t, g, wantOf(1, "py:m.f", 1), []sched.Event{wantOf(1, "py:m.f", 1)})
	passed(t, g, sched.Want{Key: sched.ClassKey{Job: 7, Class: 2}}, []sched.Event{sched.Want{Key: sched.ClassKey{Job: 7, Class: 2}}})
}
