package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/telemetry/rotate"
	"mobula/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var opts = &wire.TaskOptions{Func: "f"}

func spec(n uint64) *wire.TaskSpec {
	return &wire.TaskSpec{ID: ids.Derive(ids.RootTask(1, 7), n), Opts: opts}
}

func all(r *Recorder, from uint64) (out []Event, next, lost uint64) {
	parts, next, lost := r.Since(from)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out, next, lost
}

// Below the rate everything is recorded; the ring keeps the newest events, at least as many as configured, and
// dropped ones are counted.
func TestTheRingCountsWhatItLost(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		ring := rapid.IntRange(1, 5000).Draw(rt, "ring")
		r := New(Config{Ring: ring, Rate: 1e9})
		var read uint64 // a reader's place
		var readAll, readLost uint64
		n := uint64(0)
		for range rapid.IntRange(0, 30).Draw(rt, "batches") {
			var batch []owner.Transition
			for range rapid.IntRange(0, 700).Draw(rt, "batch") {
				batch = append(batch, owner.Transition{Spec: spec(n), State: task.Running, At: int64(n)})
				n++
			}
			r.Record(batch)
			if rapid.Bool().Draw(rt, "read") {
				evs, next, lost := all(r, read)
				for i, e := range evs {
					if e.At != int64(read+lost)+int64(i) {
						rt.Fatalf("event %d is %d", read+lost+uint64(i), e.At)
					}
				}
				read, readAll, readLost = next, readAll+uint64(len(evs)), readLost+lost
			}
		}
		st := r.Stats()
		if st.Recorded != n || st.Dropped != 0 || st.States[task.Running] != n {
			rt.Fatalf("stats %+v of %d", st, n)
		}
		if st.Kept < min(ring, int(n)) || st.Kept > ring+2*blockSize {
			rt.Fatalf("%d kept of %d, the ring is %d", st.Kept, n, ring)
		}
		if readAll+readLost != read {
			rt.Fatalf("%d read and %d lost up to %d", readAll, readLost, read)
		}
		evs, _, lost := all(r, 0)
		if uint64(len(evs))+lost != n || len(evs) > 0 && evs[len(evs)-1].At != int64(n-1) {
			rt.Fatalf("%d events and %d lost of %d", len(evs), lost, n)
		}
	})
}

// Above the rate whole tasks are dropped and every event is counted; below it all are recorded again. Failures and
// traced tasks always are.
func TestAboveTheRateTasksAreLeftOut(t *testing.T) {
	r := New(Config{Ring: 1 << 20, Rate: 10_000})
	states := []task.State{task.PendingArgs, task.PendingNode, task.Submitted, task.Running, task.Finished}
	at, n, failures := int64(1e9), uint64(0), 0
	second := func(tasks int) {
		for i := range tasks {
			s := spec(n)
			s.Trace.Flags = 0
			if n%1000 == 7 {
				s.Trace = wire.TraceContext{TraceID: s.ID.Trace(), Flags: 1}
			}
			n++
			var batch []owner.Transition
			for _, st := range states {
				batch = append(batch, owner.Transition{Spec: s, State: st, At: at})
			}
			if n%500 == 0 {
				batch[4].State, batch[4].Reason = task.Failed, errs.New(errs.CodeTaskFailed, "x")
				failures++
			}
			r.Record(batch)
			at += int64(time.Second) / int64(tasks)
			_ = i
		}
	}
	second(200_000) // a million events
	st := r.Stats()
	if st.Recorded+st.Dropped != 1_000_000 || st.Recorded > 40_000 || st.Recorded < 5_000 {
		t.Errorf("recorded %d, dropped %d of 1000000 at 10000 a second", st.Recorded, st.Dropped)
	}
	evs, _, _ := all(r, 0)
	of, failed, traced := map[ids.TaskID]int{}, 0, 0
	for _, e := range evs {
		of[e.Task]++
		if e.State == task.Failed {
			failed++
		}
	}
	whole := 0
	for i := range n {
		if c := of[spec(i).ID]; c == len(states) {
			whole++
			if i%1000 == 7 {
				traced++
			}
		}
	}
	if failed != failures || traced != int(n)/1000 {
		t.Errorf("%d of %d failures and %d of %d traced tasks are recorded", failed, failures, traced, n/1000)
	}
	if whole*len(states) < len(evs)*8/10 {
		t.Errorf("%d tasks are whole of %d events", whole, len(evs))
	}
	at += int64(5 * time.Second)
	before := r.Stats()
	second(1000)
	if after := r.Stats(); after.Dropped != before.Dropped || after.Recorded != before.Recorded+5000 {
		t.Errorf("when it is calm %d are dropped", after.Dropped-before.Dropped)
	}
}

func TestFilesHoldEveryEventOrCountIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Ring: 30_000, Rate: 1e9})
		var out safeBuffer
		f := NewFile(r, &out, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { f.Run(ctx); close(done) }()
		total := 0
		put := func(n int) {
			for range n {
				r.Record([]owner.Transition{{Spec: spec(uint64(total)), State: task.Finished, At: int64(total), Attempt: 1}})
				total++
			}
		}
		put(5000)
		time.Sleep(time.Second)
		put(50_000) // more than the ring, and than a turn
		time.Sleep(time.Second)
		put(3)
		cancel()
		<-done
		if lines := strings.Count(out.String(), "\n"); uint64(lines)+f.Unfiled() != uint64(total) || lines < 5000+fileMost {
			t.Errorf("%d lines and %d unfiled of %d", lines, f.Unfiled(), total)
		}
	})
	// And into files that rotate.
	r := New(Config{})
	w := rotate.New(path, 1<<20, 1)
	f := NewFile(r, w, func(err error) { t.Error(err) })
	r.Record([]owner.Transition{{Spec: spec(1), State: task.Finished, At: 1}})
	f.turn()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var failed error
	f.failed = func(err error) { failed = err }
	r.Record([]owner.Transition{{Spec: spec(2), State: task.Finished, At: 1}})
	f.turn()
	if !errors.Is(failed, errs.ErrShutdown) || f.Unfiled() != 1 {
		t.Errorf("a write that fails: %v, %d unfiled", failed, f.Unfiled())
	}
}

// A writer of files has nothing to do while nothing is recorded, and then writes after a moment.
func TestTheFileOfAnIdleNodeSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, out := New(Config{}), &safeBuffer{}
		f := NewFile(r, out, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Run(ctx)
		}()
		for range 2 {
			time.Sleep(time.Hour)
			r.Record([]owner.Transition{{Spec: spec(1), State: task.Running, At: 1}})
			time.Sleep(fileEvery / 2)
			r.Record([]owner.Transition{{Spec: spec(1), State: task.Finished, At: 2}})
		}
		time.Sleep(time.Hour)
		r.Record([]owner.Transition{{Spec: spec(2), State: task.Running, At: 3}})
		cancel()
		<-done
		// Two of what came within fileEvery; one for the token of the second event where the turn's read came first; one at the end.
		if lines := strings.Count(out.String(), "\n"); lines != 5 || f.turns > 5 {
			t.Errorf("%d lines, of 5, in %d turns of two hours", lines, f.turns)
		}
	})
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestLinesAreJSON(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		reason := rapid.String().Draw(rt, "reason")
		if rapid.Bool().Draw(rt, "bytes") {
			reason = string(rapid.SliceOf(rapid.Byte()).Draw(rt, "raw"))
		}
		e := Event{Task: spec(1).ID, Opts: &wire.TaskOptions{Func: rapid.String().Draw(rt, "func")}, At: 5, State: task.Running, Started: 3, Ended: 4,
			Worker: 9, Lease: 8, Attempt: 2, Kind: wire.TaskActorCall, Reason: &errs.Error{Msg: reason}}
		var got map[string]any
		line := appendEvent(nil, &e)
		if err := json.Unmarshal(line, &got); err != nil || bytes.Count(line, []byte("\n")) != 1 {
			rt.Fatalf("%q: %v", line, err)
		}
		if got["id"] != e.Task.String() || got["state"] != "RUNNING" || got["kind"] != "actor-call" || got["worker"] != "9" || got["ended"] != 4.0 ||
			got["reason"] != strings.ToValidUTF8(reason, "\uFFFD") && !strings.ContainsRune(got["reason"].(string), 0xFFFD) {
			rt.Fatalf("%q reads as %v", line, got)
		}
	})
}

func TestTheBoundsCanBeChanged(t *testing.T) {
	r := New(Config{Rate: 1e9})
	put := func(n int) {
		for i := range n {
			r.Record([]owner.Transition{{Spec: spec(uint64(i)), State: task.Finished, At: 1}})
		}
	}
	put(50_000)
	r.Configure(Config{Ring: 2000, Rate: 1e9})
	if st := r.Stats(); st.Kept < 2000 || st.Kept > 4*blockSize || st.Recorded != 50_000 {
		t.Errorf("after the ring shrank: %+v", st)
	}
	put(10)
	if evs, next, lost := all(r, 50_000); len(evs) != 10 || next != 50_010 || lost != 0 {
		t.Errorf("%d events from 50000 on, next %d, lost %d", len(evs), next, lost)
	}
	r.Configure(Config{Ring: -1})
	put(10)
	if st := r.Stats(); r.Recording() || st.Kept != 0 || st.Dropped != 0 || st.States[task.Finished] != 50_020 {
		t.Errorf("without a ring: %+v", st)
	}
	r.Configure(Config{Rate: 1e9})
	put(10)
	if st := r.Stats(); !r.Recording() || st.Kept != 10 || st.Recorded != 50_020 {
		t.Errorf("with a ring again: %+v", st)
	}
}

func TestAnEventIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Event{}); n > 96 {
		t.Errorf("an event takes %d bytes; 100,000 of them are to stay below 10 MB", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	for name, rate := range map[string]int{"all": 1 << 30, "thinned": 20_000} {
		b.Run(name, func(b *testing.B) {
			r := New(Config{Rate: rate})
			batch := make([]owner.Transition, 320)
			for i := range batch {
				batch[i] = owner.Transition{Spec: spec(uint64(i / 5)), State: task.State(i%5 + 1)}
			}
			at := int64(1)
			b.ReportAllocs()
			for b.Loop() {
				for i := range batch {
					batch[i].At = at
				}
				at += 128_000 // 2.5 million events a second
				r.Record(batch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/320, "ns/event")
		})
	}
}

// Tasks that are known by their number only are counted, and none of them is recorded.
func TestCountsOfTasks(t *testing.T) {
	r := New(Config{})
	spec := &wire.TaskSpec{Kind: wire.TaskActorCall, Opts: &wire.TaskOptions{Func: "f"}}
	r.Record([]owner.Transition{{Spec: spec, State: task.Finished, At: 1, Count: 1000}, {Spec: spec, State: task.Finished, At: 1}})
	if st := r.Stats(); st.Recorded != 1 || st.Dropped != 1000 || st.States[task.Finished] != 1001 {
		t.Errorf("the record says %+v", st)
	}
}
