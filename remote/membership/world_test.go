package membership

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/remote"
)

// Whatever hints come, in whatever order: what is told of a life makes sense, follows from a hint of that kind, and says nothing of a life that is over; the control
// plane is asked about every life that is doubted, and not too often; when the hints are good again, everybody is alive.
func TestHintsInAnyOrder(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			w.step(w.draw())
		}
		w.settle()
	})
}

// world is a core, and what it has told.
type world struct {
	rt      *rapid.T
	c       *Core
	now     int64
	timer   int64 // 0: none
	told    map[remote.Life]State
	latest  map[ids.Home]uint64 // epoch of the last life that was up
	fenced  map[ids.Home]uint64
	loads   map[ids.Home]Load
	beats   map[remote.Life]uint64
	doubted map[remote.Life]int64 // since when, or since the last question
	asked   []int64               // when there were questions
	reports uint64
	spread  int64 // when the last load was spread
}

func newWorld(rt *rapid.T) *world {
	cfg := DefaultConfig(node(1, 2))
	cfg.AccuseBurst = 2
	cfg.Random = func(n int64) int64 { return n - 1 } // the least willing to ask
	return &world{
		rt: rt, c: NewCore(cfg), now: 1e9, told: make(map[remote.Life]State), latest: make(map[ids.Home]uint64), fenced: make(map[ids.Home]uint64),
		loads: make(map[ids.Home]Load), beats: make(map[remote.Life]uint64), doubted: make(map[remote.Life]int64),
	}
}

// draw is something that may happen.
func (w *world) draw() Event {
	rt := w.rt
	l := life(ids.Home(rapid.IntRange(1, 4).Draw(rt, "home")), rapid.Uint64Range(1, 3).Draw(rt, "epoch"))
	switch rapid.IntRange(0, 15).Draw(rt, "what") {
	case 0, 1, 2:
		n := node(l.Home, l.Epoch)
		if rapid.IntRange(0, 5).Draw(rt, "changed") == 0 {
			n.Role = Control
		}
		return Seen{n}
	case 3, 4:
		return Failed{l}
	case 5:
		return Leaving{l}
	case 6:
		return Connected{l}
	case 7, 8:
		return Broken{l}
	case 9:
		return NobodyListens{l}
	case 10, 11:
		w.beats[l] += rapid.Uint64Range(0, 2).Draw(rt, "beats")
		return Beat{node(l.Home, l.Epoch), w.beats[l]}
	case 12:
		if rapid.IntRange(0, 3).Draw(rt, "fence") == 0 {
			return Fenced{l}
		}
		return Gossiped{Load{l, rapid.Uint64Range(1, 5).Draw(rt, "version"), nil}}
	case 13:
		w.reports++
		return Report{w.reports, make([]byte, 100)}
	}
	w.pass(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(rt, "time")))
	return List{ID: 1}
}

// pass lets time pass, and the timer come when it is due.
func (w *world) pass(d time.Duration) {
	until := w.now + int64(d)
	for w.timer != 0 && w.timer <= until {
		w.now = max(w.now, w.timer)
		w.timer = 0
		w.step(Timer{})
	}
	w.now = until
}

func (w *world) step(ev Event) {
	if f, ok := ev.(Fenced); ok && f.Life.Epoch > w.fenced[f.Life.Home] {
		w.fenced[f.Life.Home] = f.Life.Epoch
	}
	for _, f := range w.c.Step(w.now, ev) {
		switch f := f.(type) {
		case NodeUp:
			w.state(ev, f.Node.Life, Alive, NoReason)
		case NodeSuspect:
			w.state(ev, f.Life, Suspect, f.Why)
		case NodeDead:
			w.state(ev, f.Life, Dead, f.Why)
		case NodeLeft:
			w.state(ev, f.Life, Left, NoReason)
		case NodeFenced:
			w.ended(f.Life)
		case Superseded:
			if of, ok := ev.(Fenced); !ok || of.Life != life(1, f.Epoch) || f.Epoch < 2 {
				w.rt.Fatalf("%T%+v: %+v", ev, ev, f)
			}
		case LoadReceived:
			was := w.loads[f.Load.Life.Home]
			if l := f.Load; l.Life.Epoch < was.Life.Epoch || l.Life == was.Life && l.Version <= was.Version || l.Life.Epoch <= w.fenced[l.Life.Home] {
				w.rt.Fatalf("load %+v after %+v", l, was)
			}
			w.loads[f.Load.Life.Home] = f.Load
		case Accuse:
			w.accused(f)
		case Spread:
			if w.spread != 0 && w.now-w.spread < int64(time.Second) || f.Load.Version != w.reports {
				w.rt.Fatalf("load %d of %d spread %v after the one before", f.Load.Version, w.reports, time.Duration(w.now-w.spread))
			}
			w.spread = w.now
		case After:
			w.timer = w.now + int64(f.Delay)
		case Listed:
			for _, m := range f.Members {
				if told, ok := w.told[m.Node.Life]; ok && told != m.State || !ok && m.State != Unknown && m.State != Over && m.Node.Home != 1 {
					w.rt.Fatalf("listed %+v, told %v", m, told)
				}
			}
		}
	}
	if l, _ := about(ev); l.Epoch > w.fenced[l.Home] { // nobody is asked about the lives before this one any more
		maps.DeleteFunc(w.doubted, func(of remote.Life, _ int64) bool { return of.Home == l.Home && of.Epoch < l.Epoch })
	}
	w.check()
}

// about is the life that a hint is about, and whether it speaks against it.
func about(ev Event) (l remote.Life, against bool) {
	switch ev := ev.(type) {
	case Failed:
		return ev.Life, true
	case Broken:
		return ev.Life, true
	case NobodyListens:
		return ev.Life, true
	case Leaving:
		return ev.Life, false
	case Seen:
		return ev.Node.Life, false
	case Beat:
		return ev.Node.Life, false
	case Connected:
		return ev.Life, false
	case Gossiped:
		return ev.Load.Life, false
	}
	return remote.Life{}, false
}

// state takes a notice, and checks that it makes sense after the one before and that the event is a reason for it.
func (w *world) state(ev Event, l remote.Life, is State, why Reason) {
	was, known := w.told[l]
	of, against := about(ev)
	switch {
	case of.Home != l.Home:
		w.rt.Fatalf("%T%+v: life %v is %v", ev, ev, l, is)
	case l.Epoch <= w.fenced[l.Home] || l.Epoch < w.latest[l.Home]:
		w.rt.Fatalf("life %v is %v: lives up to %d are over, the latest is %d", l, is, w.fenced[l.Home], w.latest[l.Home])
	case !known && is != Alive, known && was == is && is != Alive, was == Left:
		w.rt.Fatalf("life %v is %v after %v", l, is, was)
	case is > was && is < Left && why != Replaced && !against && known, is < was && against:
		w.rt.Fatalf("%T%+v: life %v is %v after %v, %v", ev, ev, l, is, was, why)
	}
	w.told[l], w.latest[l.Home] = is, l.Epoch
	delete(w.doubted, l)
	if is == Suspect || is == Dead && why != Replaced {
		w.doubted[l] = w.now
	}
	if why == Replaced {
		delete(w.told, l)
	}
}

// ended takes a verdict.
func (w *world) ended(l remote.Life) {
	if l.Epoch != w.fenced[l.Home] {
		w.rt.Fatalf("%v is fenced, lives up to %d were", l, w.fenced[l.Home])
	}
	for _, of := range slices.Collect(maps.Keys(w.told)) {
		if of.Home == l.Home && of.Epoch <= l.Epoch {
			delete(w.told, of)
			delete(w.doubted, of)
		}
	}
}

func (w *world) accused(f Accuse) {
	if s := w.told[f.Life]; s != Suspect && s != Dead {
		w.rt.Fatalf("%v is accused, and is %v", f.Life, s)
	}
	w.doubted[f.Life] = w.now
	w.asked = append(w.asked, w.now)
	if n := len(w.asked); n > 2*2 && w.now-w.asked[n-1-2*2] < int64(time.Second) {
		w.rt.Fatalf("5 questions in %v", time.Duration(w.now-w.asked[n-5]))
	}
}

// check holds what must hold after each step.
func (w *world) check() {
	living := 0
	for _, s := range w.told {
		living += lives(s)
	}
	if w.c.size() != living+1 {
		w.rt.Fatalf("%d nodes, %d are told of", w.c.size(), living+1)
	}
	for l, since := range w.doubted { // a few rounds until one asks, then twice as long each time, and at most 30 s
		if w.now-since > int64(40*time.Second) && w.timer == 0 {
			w.rt.Fatalf("%v is doubted for %v, and nothing is due", l, time.Duration(w.now-since))
		}
	}
}

// settle lets a minute pass, in which each life that is doubted is accused; then all is well.
func (w *world) settle() {
	w.pass(40 * time.Second)
	for l, since := range w.doubted {
		if w.now-since > int64(35*time.Second) {
			w.rt.Fatalf("nobody has asked about %v for %v", l, time.Duration(w.now-since))
		}
	}
	for home := ids.Home(2); home <= 4; home++ {
		l := life(home, 9)
		w.step(Connected{l})
		w.step(Seen{node(home, 9)})
		w.step(Broken{l})
		w.step(Connected{l})
		if w.told[l] != Alive {
			w.rt.Fatalf("%v is %v", l, w.told[l])
		}
	}
}
