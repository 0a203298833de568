package owner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/oplog"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/record"
	"mobula/raylet/sched"
	"mobula/wire"
)

// keep carries out on a real log what the last step asked for, as a node does, and tends it.
func (s *script) keep(log *oplog.Log) func([]Effect) {
	fail := func(err error) {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return func(es []Effect) {
		for _, e := range es {
			switch e.Kind {
			case Log:
				for i := range *e.Records {
					r := &(*e.Records)[i]
					at, err := log.Append(r.Bytes)
					fail(err)
					if old := r.Appended(at); old != 0 {
						fail(log.Free(old))
					}
				}
			case LogFree, LogLapse:
				for _, ck := range *e.Cookies {
					switch {
					case *ck == 0:
					case e.Kind == LogFree:
						fail(log.Free(*ck))
					default:
						fail(log.Lapse(*ck))
					}
				}
			}
		}
		for log.Due() {
			_, err := log.Tend(64<<10, func(cookie uint64, rec []byte) error {
				at := s.c.Relocate(cookie, rec)
				if at == nil {
					r, _, _ := record.Parse(rec)
					s.t.Fatalf("a record is live and nobody knows it: %T %+v", r, r)
				}
				moved, err := log.Append(rec)
				*at = moved
				return err
			})
			fail(err)
		}
	}
}

// After ten times the work the log takes what it took before: tasks, calls, puts and streams that are let go of, and an actor that is restarted
// again and again, leave nothing.
func TestTheLogDoesNotGrowWithTheWorkDone(t *testing.T) {
	opt := oplog.Options{MinSegment: 64 << 10, MaxSegment: 256 << 10, Reuse: 128 << 10}
	log, err := oplog.Open(t.TempDir(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s := newScript(t, Config{CreditWindow: 1 << 20})
	s.log, s.trust = s.keep(log), true
	a, la := s.spawn(&wire.TaskOptions{Func: "counter", NumReturns: 1, MaxRestarts: -1, MaxPendingCalls: -1}, worker)
	parent := s.submit(&wire.TaskOptions{Func: "parent", NumReturns: 1}) // its puts are a worker's
	s.grant(worker2)
	held := s.root.Put(1)
	s.from(driver, &wire.PutValue{ID: held, Value: wire.Value{Data: make([]byte, 1000)}})
	rows := &wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming}
	many := make([]wire.Msg, wire.Replayed+1) // after which nothing that the driver made is sent again
	for i := range many {
		many[i] = &wire.PutValue{ID: held}
	}
	seq, puts := uint64(0), uint32(1)
	work := func(rounds int) oplog.Stats {
		for range rounds {
			for range 10 { // tasks
				spec := s.submit(simple, wire.Arg{Value: wire.Value{Data: make([]byte, 100)}})
				l := s.grant(worker2)
				s.done(worker2, l, s.executed(worker2), inline("v"))
				s.step(FromSched{sched.Reclaim{Lease: l}})
				s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
			}
			for range 10 { // calls
				seq++
				call := s.call(a, seq)
				s.done(worker, la, s.executed(worker), inline("v"))
				s.from(driver, &wire.Release{IDs: []ids.ObjectID{call.ID.Return(0)}})
			}
			for range 10 { // puts, the smallest there are
				puts++
				own, child := s.root.Put(puts), parent.ID.Put(puts)
				s.from(driver, &wire.PutValue{ID: own})
				s.from(worker2, &wire.PutValue{ID: child})
				s.from(driver, &wire.Release{IDs: []ids.ObjectID{own}})
				s.from(worker2, &wire.Release{IDs: []ids.ObjectID{child}})
			}
			stream := s.submit(rows)
			l := s.grant(worker2)
			x := s.executed(worker2)
			for i := range uint32(5) {
				s.from(worker2, &wire.StreamItem{Task: stream.ID, Attempt: x.Attempt, Index: i, Result: inline("item")})
				s.from(driver, &wire.StreamNext{Task: stream.ID, Index: i})
				s.from(driver, &wire.AddRef{ID: stream.ID.Return(int(i))})
				s.from(driver, &wire.Release{IDs: []ids.ObjectID{stream.ID.Return(int(i))}})
			}
			s.from(worker2, &wire.Done{Task: stream.ID, Attempt: x.Attempt, Lease: l, Items: 5})
			s.from(driver, &wire.StreamNext{Task: stream.ID, Index: 5})
			s.step(FromSched{sched.Reclaim{Lease: l}})
			s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Restart: true})
			la = s.grant(worker)
			s.done(worker, la, s.executed(worker), inline(""))
		}
		if n := s.c.tasks.n; n != 2 {
			t.Fatalf("%d tasks are left", n)
		}
		for n := 0; n < len(many); n += 8192 {
			s.from(driver, many[n:min(n+8192, len(many))]...)
		}
		return log.Stats()
	}
	once := work(40)
	more := work(400)
	t.Logf("after the work: %+v; after ten times more: %+v", once, more)
	if more.Live > once.Live+2000 {
		t.Errorf("%d bytes are live after ten times the work, %d were before", more.Live, once.Live)
	}
	if most := 2*more.Live + int64(opt.MinSegment+2*opt.MaxSegment+opt.Reuse); more.Bytes+more.Spare > most {
		t.Errorf("%d bytes of segments and %d spare, at most %d are right", more.Bytes, more.Spare, most)
	}
	if more.Deleted < 5 {
		t.Errorf("%d segments are gone: the case is not what it is meant to be", more.Deleted)
	}
}

// Tables of options are bounded by their number. Long ones, as those with a task's own name, end with their tasks, whose submissions in the log
// have them.
func TestLongOptionsEndWithTheirTasks(t *testing.T) {
	s := newScript(t, Config{})
	kept := func() (n int) {
		for key := range s.c.optKeys {
			n += len(key)
		}
		for _, o := range s.c.optByNo {
			n += len(o.Label)
		}
		for o := range s.c.optNo {
			n += len(o.Label)
		}
		for _, ptrs := range s.c.classes.ptr {
			for o := range ptrs {
				n += len(o.Label)
			}
		}
		for _, k := range s.c.classes.byID {
			n += len(k.opts.Label)
			for label := range k.labels.seen {
				n += len(label)
			}
		}
		return n
	}
	const long = 20_000
	work := func(tasks int) int {
		for i := range tasks {
			name := fmt.Sprint(tasks, " ", i)
			spec := s.submit(&wire.TaskOptions{Func: "f", NumReturns: 1, Label: name + strings.Repeat("x", long)})
			l := s.grant(worker)
			x := s.executed(worker)
			if !strings.HasPrefix(x.Spec.Opts.Label, name+"x") {
				t.Fatalf("task %q runs with the options of %.20q", name, x.Spec.Opts.Label)
			}
			s.done(worker, l, x, inline(""))
			s.step(FromSched{sched.Reclaim{Lease: l}})
			s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}})
		}
		return kept()
	}
	once := work(10)
	if more := work(100); more > once+100*labelMost || once > 2*long {
		t.Errorf("tables keep %d bytes of ten tasks, %d of ten times more", once, more)
	}
}

// What a record replaces may be in the log of a killed process or not: the next core is the same. Where the new record had no room, the core is
// the one before.
func TestACoreIsRebuiltWithAndWithoutWhatWasReplaced(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept: %v", keeps), func(t *testing.T) {
			s := newScript(t, Config{})
			s.keepsReplaced = keeps
			a, _ := s.spawn(&wire.TaskOptions{Func: "counter", NumReturns: 1, MaxRestarts: -1}, worker)
			for range 50 {
				s.from(driver, &wire.KillActor{Actor: ids.ActorID(a.ID), Restart: true})
				l := s.grant(worker)
				s.done(worker, l, s.executed(worker), inline(""))
			}
			flaky := s.submit(&wire.TaskOptions{Func: "flaky", NumReturns: 1, MaxRetries: -1, RetryExceptions: true})
			l := s.grant(worker2)
			x := s.executed(worker2)
			for range 50 {
				s.failed(worker2, l, x, errs.New(errs.CodeTaskFailed, "once more"))
				x = s.executed(worker2)
			}
			if n := len(s.logs); !keeps && n > 7 {
				t.Errorf("the log has %d records of a task and an actor", n)
			}
			h, w, w2 := holds(1), holds(1), holds(1)
			h.Handles = []ids.ObjectID{a.ID.Return(0), flaky.ID.Return(0)}
			w.Actors = []ids.ActorID{ids.ActorID(a.ID)}
			w2.Tasks = []wire.Attempt{{Task: flaky.ID, Attempt: x.Attempt, Lease: l}}
			s.answered(1, map[ids.ClientID]*wire.Holdings{driver: h, worker: w, worker2: w2})
			rec, again := s.c.actors.byID[ids.ActorID(a.ID)], s.c.tasks.task(flaky.ID)
			if rec.state != actor.Alive || rec.restarts != 50 || again.tries != 50 || again.start != x.Attempt {
				t.Errorf("the actor is %v after %d restarts, the task at attempt %d after %d tries", rec.state, rec.restarts, again.start, again.tries)
			}
			for ck, b := range s.logs { // what the new core has no use for it has freed
				r, _, err := record.Parse(b)
				if err != nil {
					t.Fatal(err)
				}
				if at := s.c.Relocate(ck, b); at == nil && !slices.Contains(s.freed, ck) {
					t.Errorf("%T at %d is neither known nor freed", r, ck)
				}
			}
		})
	}
}

// A long stream keeps no item's bytes in the log that its reader has let go of. The next core knows how far it is.
func TestTheLogKeepsNoItemsThatWereLetGoOf(t *testing.T) {
	for name, budget := range map[string]int64{"in messages": 0, "packed": 1} {
		t.Run(name, func(t *testing.T) {
			const items, size = 50, 2000
			s := newScript(t, Config{InlineBudget: budget})
			spec := s.submit(&wire.TaskOptions{Func: "rows", NumReturns: wire.Streaming, MaxRetries: 1})
			l := s.grant(worker)
			x := s.executed(worker)
			send := func(i uint32) {
				s.from(worker, &wire.StreamItem{Task: spec.ID, Attempt: x.Attempt, Index: i, Result: inline(string(make([]byte, size)))})
				if budget > 0 {
					s.step(FromStore{Msg: objectstore.Packed{ID: spec.ID.Return(int(i)), Size: size}})
				}
			}
			for i := range uint32(items) {
				send(i)
				s.from(driver, &wire.StreamNext{Task: spec.ID, Index: i}, &wire.AddRef{ID: spec.ID.Return(int(i))})
				s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(int(i))}})
			}
			for _, ck := range s.freed {
				delete(s.logs, ck)
			}
			bytes := 0
			for _, b := range s.logs {
				bytes += len(b)
			}
			if bytes > items*60+1000 {
				t.Errorf("the log has %d bytes for a stream of %d items that are gone", bytes, items)
			}
			h, w := holds(1), holds(1)
			h.Handles = []ids.ObjectID{spec.ID.Stream()}
			h.Streams = []wire.StreamNext{{Task: spec.ID, Index: items}}
			w.Tasks = []wire.Attempt{{Task: spec.ID, Attempt: x.Attempt, Lease: l}}
			s.answered(1, map[ids.ClientID]*wire.Holdings{driver: h, worker: w})
			send(items)
			s.from(driver, &wire.StreamNext{Task: spec.ID, Index: items})
			if got := sent[*wire.StreamItem](s, driver); len(got) != 1 || got[0].Index != items || got[0].Result.Kind == wire.ResultError {
				t.Fatalf("its reader hears %+v", got)
			}
			s.from(worker, &wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Items: items + 1})
			s.from(driver, &wire.StreamNext{Task: spec.ID, Index: items + 1})
			if got := sent[*wire.StreamItem](s, driver); len(got) != 1 || got[0].Result.Kind != wire.ResultNone {
				t.Errorf("at its end its reader hears %+v", got)
			}
		})
	}
}

// A record that has no room does not cost the log what it was to replace.
func TestWhatAFailedAppendWasToReplaceStays(t *testing.T) {
	at := uint64(7)
	r := LogRecord{Cookie: &at, Replaces: true}
	if old := r.Appended(0); old != 0 || at != 7 {
		t.Errorf("freed %d, and the record lies at %d", old, at)
	}
	if old := r.Appended(9); old != 7 || at != 9 {
		t.Errorf("freed %d, and the record lies at %d", old, at)
	}
	r.Replaces = false
	if old := r.Appended(0); old != 0 || at != 0 {
		t.Errorf("freed %d, and the record lies at %d", old, at)
	}
}

// Of a log that ends with the process a step's frees come before all that they allow: nothing else says that a task is forgotten. No record says so.
func TestALogThatEndsWithTheProcessHasNoForgetRecords(t *testing.T) {
	s := newScript(t, Config{VolatileLog: true})
	spec := s.submit(simple)
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline("v"))
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{spec.ID.Return(0)}}, &wire.PutValue{ID: s.root.Put(1)})
	if len(s.out) < 2 || s.out[0].Kind != Log || s.out[1].Kind != LogFree {
		t.Errorf("the effects are %+v", s.out)
	}
	for _, b := range s.logs {
		r, _, err := record.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if forget, ok := r.(*record.Forget); ok {
			t.Errorf("the log has %+v", forget)
		}
	}
	for _, ck := range s.freed {
		delete(s.logs, ck)
	}
	if c := s.rebuilt(); c.tasks.n != 0 || len(s.logs) != 2 {
		t.Errorf("a rebuilt core has %d tasks of %d records", c.tasks.n, len(s.logs))
	}
}
