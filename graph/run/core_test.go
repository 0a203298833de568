package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/graph"
	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/wire"
)

func packed(ns ...int32) []byte {
	var b []byte
	for _, n := range ns {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// request is a graph of tasks that each take what deps says, without payloads.
func request(deps [][]int32, wanted ...int32) *Request {
	r := &Request{Version: Version, Func: "f", Saturation: graph.DefaultSaturation, Failures: 3, Wanted: packed(wanted...)}
	var flat, counts, lengths []int32
	for i, ds := range deps {
		r.Keys = append(r.Keys, fmt.Sprintf("('t', %d)", i))
		flat = append(flat, ds...)
		counts = append(counts, int32(len(ds)))
		lengths = append(lengths, 0)
	}
	r.Deps, r.DepCount, r.Length, r.Blobs = packed(flat...), packed(counts...), packed(lengths...), packed(int32(len(deps)))
	return r
}

func work(t *rapid.T, r *Request) *Work {
	t.Helper()
	w, err := NewWork(r)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// world is an owner and a runner for one core: it carries effects out.
type world struct {
	t       *rapid.T
	w       *Work
	ledger  *Ledger
	core    *Core
	ran     map[int32]int // how often a task was submitted
	waiting []int32       // submitted, in order
	fails   map[int32]bool
	passed  map[int32]bool // failed by an argument
	refuses map[int32]bool // cannot be submitted
	refused []int32        // and the core has not heard so yet
	done    bool
	err     error // with which it ended
	told    []StreamEvent
	sum     *Summary
	now     int64
	limit   int64
	size    uint64 // of results
}

func newWorld(t *rapid.T, w *Work, limit int64, refuses ...int32) *world {
	x := &world{t: t, w: w, ledger: NewLedger(w.graph.Len()), ran: map[int32]int{}, fails: map[int32]bool{}, passed: map[int32]bool{}, refuses: map[int32]bool{}, limit: limit, size: 8}
	for _, task := range refuses {
		x.refuses[task] = true
	}
	x.restart()
	return x
}

// restart discards the core, as a panic does.
func (x *world) restart() {
	c, err := NewCore(x.w, x.ledger, Capacity{Threads: 2, Memory: 1 << 30}, x.limit)
	if err != nil {
		x.t.Fatal(err)
	}
	x.core = c
	x.step(Begin{})
}

func (x *world) step(ev Event) {
	x.now += 1000
	for _, e := range x.core.Step(x.now, ev) {
		switch e := e.(type) {
		case Submit:
			en := &x.ledger.tasks[e.Task]
			if en.state != Unsent {
				x.t.Fatalf("task %d is submitted in state %d", e.Task, en.state)
			}
			for _, d := range x.w.deps[e.Task] {
				if x.ledger.tasks[d].state != Made {
					x.t.Fatalf("task %d is submitted before what it takes, %d", e.Task, d)
				}
			}
			if x.refuses[e.Task] {
				x.refused = append(x.refused, e.Task)
				continue
			}
			en.state = Sent
			x.ran[e.Task]++
			x.waiting = append(x.waiting, e.Task)
		case Release:
			x.ledger.Release(e.Task)
		case ReleasePart:
		case Withdraw:
			x.ledger.Release(e.Task)
			x.waiting = slices.DeleteFunc(x.waiting, func(t int32) bool { return t == e.Task })
		case Pass:
			if x.refuses[e.Chain[len(e.Chain)-1]] {
				continue // there is nothing that the others could take
			}
			for _, t := range e.Chain[:len(e.Chain)-1] {
				x.passed[t] = true
				x.ledger.tasks[t].state = Failed
				x.ledger.tasks[t].failure = errors.New("by an argument")
			}
		case Tell:
			x.told = append(x.told, e.StreamEvent)
			x.sum = e.Summary
		case Over:
			x.done, x.err = true, e.Err
		}
	}
}

func (x *world) resolve(i int) {
	t := x.waiting[i]
	x.waiting = slices.Delete(x.waiting, i, i+1)
	res := &wire.Result{Kind: wire.ResultInline, Size: x.size}
	if x.fails[t] {
		res = &wire.Result{Kind: wire.ResultError, Err: errs.New(errs.CodeTaskFailed, "told to")}
	}
	x.step(Resolved{[]Result{{Task: t, Result: res}}})
}

var errRefused = errors.New("it was refused")

// A graph with more tasks than a stream may have items reports several tasks per event, a failure at once, and every task
// by the end.
func TestEventsOfAGraphOfVeryManyTasks(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		const n = 60
		w := work(t, request(make([][]int32, n), wholeRange(n)...))
		w.Events = true
		x := newWorld(t, w, 0)
		x.ledger.events = rapid.IntRange(0, 5).Draw(t, "alike") * eventsAlike
		x.told = nil
		fails := rapid.Int32Range(0, n).Draw(t, "fails")
		x.fails[fails] = true
		failures := 0
		for !x.done {
			least, k := x.ledger.events/eventsAlike, len(x.told)
			x.resolve(rapid.IntRange(0, len(x.waiting)-1).Draw(t, "ends"))
			for _, e := range x.told[k:] {
				if len(e.Failed) == 0 && e.Summary == nil && len(e.Started)+len(e.Done) <= least {
					t.Fatalf("an event tells of %d starts and %d ends, want more than %d", len(e.Started), len(e.Done), least)
				}
			}
			if x.fails[fails] && x.ledger.failures > failures {
				failures = x.ledger.failures
				if last := x.told[len(x.told)-1]; !slices.Equal(last.Failed, []int32{fails}) {
					t.Fatalf("task %d has failed, and is not told at once: %v", fails, last)
				}
			}
		}
		ended := map[int32]int{}
		for _, e := range x.told {
			for _, t := range slices.Concat(e.Done, e.Failed) {
				ended[t]++
			}
		}
		if len(ended) != n {
			t.Fatalf("%d of %d tasks were told", len(ended), n)
		}
	})
}

func wholeRange(n int32) []int32 {
	ts := make([]int32, n)
	for i := range ts {
		ts[i] = int32(i)
	}
	return ts
}

// Whatever the order of results, whichever tasks fail, and however often the core is lost: each wanted result is made or has
// failed, nothing runs twice, and unneeded results are released.
func TestEveryWantedResultComes(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "tasks")
		deps := make([][]int32, n)
		for i := 1; i < n; i++ {
			for range rapid.IntRange(0, min(i, 4)).Draw(t, "deps") {
				deps[i] = append(deps[i], int32(rapid.IntRange(0, i-1).Draw(t, "dep")))
			}
		}
		wanted := slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 1, 4).Draw(t, "wanted"))))
		r := request(deps, wanted...)
		r.Saturation = rapid.SampledFrom([]float64{0, 1.1, math.Inf(1)}).Draw(t, "saturation")
		x := newWorld(t, work(t, r), rapid.SampledFrom([]int64{0, 1, 1000, 1 << 30}).Draw(t, "limit"), rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 0, 2).Draw(t, "refuses")...)
		for i := range n {
			x.fails[int32(i)] = rapid.IntRange(0, 9).Draw(t, "fails") == 0
		}
		for steps := 0; !x.done; steps++ {
			if steps > 10*n+100 {
				t.Fatal("it does not end")
			}
			if rapid.IntRange(0, 7).Draw(t, "lost") == 0 {
				x.restart()
				continue
			}
			if x.limit > 0 {
				x.step(Heaps{rapid.Int64Range(0, 2*x.limit).Draw(t, "heaps")})
				x.size = rapid.Uint64Range(0, 2*uint64(x.limit)).Draw(t, "size")
			}
			if len(x.refused) > 0 {
				task := x.refused[0]
				x.refused = x.refused[1:]
				x.step(Refused{task, errRefused})
				continue
			}
			if len(x.waiting) == 0 {
				t.Fatalf("nothing is with the owner and %v are not there", wanted)
			}
			if rapid.IntRange(0, 3).Draw(t, "secedes") == 0 {
				x.step(Seceded{x.waiting[rapid.IntRange(0, len(x.waiting)-1).Draw(t, "who")], rapid.Bool().Draw(t, "back")})
			}
			if x.core.inFlight < 0 {
				t.Fatalf("%d tasks are with the owner", x.core.inFlight)
			}
			if len(x.waiting) == 0 {
				continue // the last one was withdrawn, as nobody needs it
			}
			x.resolve(rapid.IntRange(0, len(x.waiting)-1).Draw(t, "next"))
		}
		bad := make([]bool, n)
		for i := range deps {
			bad[i] = x.fails[int32(i)] || x.refuses[int32(i)] || slices.ContainsFunc(deps[i], func(d int32) bool { return bad[d] })
		}
		for _, k := range wanted {
			if s := x.ledger.tasks[k].state; s != Made && !bad[k] || s == Made && bad[k] {
				t.Fatalf("wanted task %d ended in state %d, fails %v", k, s, bad[k])
			}
			if said := x.passed[k] || x.fails[k] && x.ran[k] > 0; bad[k] && !said && x.err != errRefused {
				t.Fatalf("wanted task %d has no error, and the graph ended with %v", k, x.err)
			}
		}
		for k, times := range x.ran {
			if times > 1 {
				t.Fatalf("task %d ran %d times", k, times)
			}
		}
		for k := range x.ledger.tasks {
			if x.ledger.tasks[k].state == Made && !slices.Contains(wanted, int32(k)) && len(x.waiting) == 0 && !slices.Contains(bad, true) {
				t.Fatalf("task %d is held and nobody needs it", k)
			}
		}
		if x.sum == nil || x.sum.Tasks != n {
			t.Fatalf("the summary is %+v", x.sum)
		}
	})
}

// The owner has few tasks at a time while tasks take long, and many while they are short.
func TestTheLineMovesAsFastAsTasksEnd(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		deps := make([][]int32, 2001)
		for i := 1; i <= 2000; i++ {
			deps[i] = []int32{0}
		}
		var wanted []int32
		for i := range int32(2000) {
			wanted = append(wanted, i+1)
		}
		x := newWorld(t, work(t, request(deps, wanted...)), 0)
		x.now += int64(1e9)
		x.resolve(0)
		if n := len(x.waiting); n != tasksPerSlot*2 {
			t.Fatalf("%d tasks are with the owner, want two a slot", n)
		}
		for range 500 { // one ends each microsecond
			x.resolve(0)
		}
		if n := len(x.waiting); n < 500 {
			t.Fatalf("%d tasks are with the owner though they end at once", n)
		}
		x.now += int64(1e12)
		for len(x.waiting) > 1 {
			x.now += int64(1e9)
			x.resolve(0)
			if len(x.waiting) == tasksPerSlot*2 {
				return
			}
		}
		t.Fatal("the window does not narrow")
	})
}

// Root tasks that wait for a withheld one would wait for ever; if they secede it runs, even if the core is lost meanwhile.
func TestWhoSecedesMakesRoomForOthers(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		const n = 20
		all := make([]int32, n)
		for i := range all {
			all[i] = int32(i)
		}
		r := request(make([][]int32, n), all...)
		r.Producer = slices.Repeat([]byte{1}, n)
		x := newWorld(t, work(t, r), 0)
		if len(x.waiting) >= n {
			t.Fatal("nothing is withheld")
		}
		for len(x.ran) < n {
			had := len(x.ran)
			for _, task := range slices.Clone(x.waiting) {
				x.step(Seceded{Task: task})
			}
			if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
				x.restart()
			}
			if p := x.core.Counts(); p.Processing != len(x.waiting) || p.InLine != 0 {
				t.Fatalf("%d tasks are processing and %d in line, want %d that are with the owner", p.Processing, p.InLine, len(x.waiting))
			}
			if len(x.ran) == had {
				t.Fatalf("%d of %d tasks were submitted, and no more come", had, n)
			}
		}
		for _, task := range slices.Clone(x.waiting) {
			x.step(Seceded{Task: task, Back: true})
		}
		if x.core.inFlight != n {
			t.Fatalf("%d tasks count, want %d: they are back", x.core.inFlight, n)
		}
		for len(x.waiting) > 0 {
			x.resolve(0)
		}
		if !x.done || x.core.inFlight != 0 || x.core.seceded != 0 {
			t.Fatalf("done %v, %d count, %d are away", x.done, x.core.inFlight, x.core.seceded)
		}
	})
}

func TestRequestsThatContradictThemselves(t *testing.T) {
	good := func() *Request { return request([][]int32{{}, {0}}, 1) }
	if _, err := NewWork(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Request){
		"version":    func(r *Request) { r.Version = 9 },
		"deps":       func(r *Request) { r.Deps = r.Deps[:3] },
		"ndeps":      func(r *Request) { r.DepCount = packed(0, 2) },
		"short":      func(r *Request) { r.DepCount = packed(0) },
		"missing":    func(r *Request) { r.Deps = packed(7) },
		"cycle":      func(r *Request) { r.Deps, r.DepCount = packed(1, 0), packed(1, 1) },
		"wanted":     func(r *Request) { r.Wanted = packed(5) },
		"saturation": func(r *Request) { r.Saturation = -1 },
		"nan":        func(r *Request) { r.Saturation = math.NaN() },
		"blobs":      func(r *Request) { r.Blobs = packed(1) },
		"length":     func(r *Request) { r.Length = packed(0, -1) },
		"outer":      func(r *Request) { r.Outer, r.OutCount = packed(-2), packed(0, 1) },
		"group":      func(r *Request) { r.Groups, r.GroupOf = []string{"g"}, packed(0, 4) },
		"producers":  func(r *Request) { r.Producer = []byte{1} },
		"note":       func(r *Request) { r.NoteOf = packed(-1, 3) },
		"part":       func(r *Request) { r.DepPart = packed(1) },
		"resources":  func(r *Request) { r.Notes = []Note{{Resources: map[string]float64{"GPU": math.Inf(1)}}} },
		"cpu":        func(r *Request) { x := 1e300; r.Notes = []Note{{CPU: &x}} },
		"returns":    func(r *Request) { r.Notes, r.NoteOf = []Note{{Returns: -4}}, packed(0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			spoil(r)
			if w, err := NewWork(r); err == nil {
				t.Fatalf("taken: %+v", w.Request)
			}
		})
	}
	var cycle *graph.CycleError
	r := good()
	r.Deps, r.DepCount = packed(1, 0), packed(1, 1)
	if _, err := NewWork(r); !errors.As(err, &cycle) {
		t.Errorf("a cycle is told as %v", err)
	}
}

// A graph takes what nodes have that come while it runs, and gives up what those had that go.
func TestAGraphGrowsWithItsNodes(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		const n = 200
		w := work(t, request(make([][]int32, n), wholeRange(n)...))
		w.Saturation = rapid.SampledFrom([]float64{graph.DefaultSaturation, math.Inf(1)}).Draw(t, "saturation")
		x := newWorld(t, w, 0)
		for range 20 {
			threads := rapid.IntRange(1, 8).Draw(t, "threads")
			x.step(Resized{Capacity{Threads: threads, Memory: 1 << 30}})
			for range rapid.IntRange(0, 5).Draw(t, "results") {
				x.now += int64(time.Second) // tasks are long: none is sent ahead for the time that a message takes
				if len(x.waiting) > 0 {
					x.resolve(0)
				}
			}
			least := threads
			if math.IsInf(w.Saturation, 1) {
				least *= tasksPerSlot
			}
			if want := min(least, n-len(x.ran)+len(x.waiting)); len(x.waiting) < want {
				t.Fatalf("%d tasks are with the owner, want %d: there are %d threads", len(x.waiting), want, threads)
			}
		}
		for len(x.waiting) > 0 {
			x.resolve(0)
		}
		if !x.done {
			t.Fatal("it does not end")
		}
	})
}

// A task that could not be submitted has no result that could fail: the graph ends with its error.
func TestAGraphEndsWithTheErrorOfATaskThatWasRefused(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		x := newWorld(t, work(t, request([][]int32{{}, {}, {0, 1}}, 2)), 0, 0)
		x.restart() // which has both submitted once more
		for len(x.refused) > 0 && !x.done {
			task := x.refused[0]
			x.refused = x.refused[1:]
			x.step(Refused{task, errRefused})
		}
		if !x.done || x.err != errRefused || x.ledger.failures != 1 {
			t.Errorf("ended: %v, with %v; %d failures", x.done, x.err, x.ledger.failures)
		}
	})
}
