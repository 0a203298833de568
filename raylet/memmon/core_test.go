package memmon

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

const gib = 1 << 30

func mustNew(t interface{ Fatal(...any) }, cfg Config) *Core {
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sample is a node of 16 GiB of which the given percentage is used.
func sample(percent float64, ws ...WorkerSample) Sample {
	return Sample{Used: uint64(percent / 100 * 16 * gib), Limit: 16 * gib, Source: "node", Workers: ws}
}

func worker(id, leases int, bytes uint64) WorkerSample {
	return WorkerSample{Worker: ids.ClientID(id), Name: fmt.Sprintf("worker %d", id), Leases: leases, Bytes: bytes}
}

func task(id, fn, owner int, started int64, retriable bool) Task {
	return Task{Worker: ids.ClientID(id), Func: fmt.Sprintf("f%d", fn), Owner: ids.Derive(ids.RootTask(1, 1), uint64(owner)), Started: started, Retriable: retriable}
}

// killed steps a sample above the threshold and the answer of the owners, and gives the decision.
func killed(t *testing.T, c *Core, now int64, s Sample, ts ...Task) *Kill {
	t.Helper()
	for _, e := range c.Step(now, s) {
		switch e := e.(type) {
		case Kill:
			return &e
		case AskTasks:
			for _, e := range c.Step(now, Tasks{Epoch: e.Epoch, Tasks: ts}) {
				if k, ok := e.(Kill); ok {
					return &k
				}
			}
		}
	}
	return nil
}

func TestVictim(t *testing.T) {
	for _, c := range []struct {
		name string
		ws   []WorkerSample
		ts   []Task
		want ids.ClientID
		why  string
	}{
		{"an idle one before any that works", []WorkerSample{worker(1, 1, 4*gib), worker(2, 0, gib)},
			[]Task{task(1, 1, 1, 9, true)}, 2, "it was idle"},
		{"retriable before not", []WorkerSample{worker(1, 1, gib), worker(2, 1, 4*gib)},
			[]Task{task(1, 1, 1, 1, true), task(2, 2, 1, 9, false)}, 1, "f1, retriable"},
		{"one task that cannot be retried spares the whole process", []WorkerSample{worker(1, 2, 4*gib), worker(2, 1, gib)},
			[]Task{task(1, 1, 1, 9, true), task(1, 2, 1, 9, false), task(2, 1, 1, 1, true)}, 2, "f1, retriable"},
		{"of the group with most tasks", []WorkerSample{worker(1, 1, gib), worker(2, 1, gib), worker(3, 1, gib)},
			[]Task{task(1, 1, 1, 5, true), task(2, 2, 1, 3, true), task(3, 2, 1, 4, true)}, 3, "the newest of 2"},
		{"callers count apart", []WorkerSample{worker(1, 1, gib), worker(2, 1, gib), worker(3, 1, gib)},
			[]Task{task(1, 1, 1, 1, true), task(2, 2, 1, 3, true), task(3, 2, 2, 4, true)}, 3, "the newest of 1"},
		{"the newest where nothing is retriable", []WorkerSample{worker(1, 1, gib), worker(2, 1, gib)},
			[]Task{task(1, 1, 1, 5, false), task(2, 1, 1, 6, false)}, 2, "nothing retriable was left"},
		{"never the driver", []WorkerSample{{Worker: 1, Name: "driver", Driver: true, Bytes: 9 * gib}, worker(2, 1, gib)},
			[]Task{task(2, 1, 1, 5, false)}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := killed(t, mustNew(t, Config{}), 0, sample(99, c.ws...), c.ts...)
			if k == nil || k.Worker != c.want || !strings.Contains(k.Err.Error(), c.why) {
				t.Fatalf("%+v", k)
			}
			if !errors.Is(k.Err, errs.ErrOutOfMemory) || !strings.Contains(k.Err.Error(), "of the node's 16 GiB are used") ||
				!strings.Contains(k.Err.Error(), "most is used by") {
				t.Errorf("the error does not say why: %v", k.Err)
			}
		})
	}
}

func TestOneAtATime(t *testing.T) {
	c := mustNew(t, Config{})
	ws := []WorkerSample{worker(1, 0, gib), worker(2, 0, gib)}
	first := killed(t, c, 0, sample(99, ws...))
	if first == nil {
		t.Fatal("nobody was ended")
	}
	for ms := int64(250); ms < 9000; ms += 250 {
		if k := killed(t, c, ms*1e6, sample(99, ws...)); k != nil {
			t.Fatalf("a second one is ended while the first still holds its memory: %+v", k)
		}
	}
	c.Step(9e9, WorkerGone{Worker: first.Worker})
	if k := killed(t, c, 9.25e9, sample(90)); k != nil {
		t.Fatalf("memory fell and %+v is ended", k)
	}
	if k := killed(t, c, 9.5e9, sample(99, worker(2, 0, gib))); k == nil {
		t.Fatal("memory rose again and nobody is ended")
	}
	if k := killed(t, c, 20e9, sample(99, worker(3, 0, gib))); k == nil {
		t.Fatal("waits for ever for a process that does not go")
	}
	if c.Kills() != 3 {
		t.Errorf("%d kills counted", c.Kills())
	}
}

func TestSilentOwnersDoNotKeepTheNodeFromBeingSaved(t *testing.T) {
	c := mustNew(t, Config{})
	s := sample(99, worker(1, 1, gib))
	c.Step(0, s)
	out := c.Step(int64(Interval), s)
	if len(out) != 1 {
		t.Fatalf("%v", out)
	}
	if k, ok := out[0].(Kill); !ok || !strings.Contains(k.Err.Error(), "did not answer") {
		t.Fatalf("%v", out)
	}
	if out := c.Step(2*int64(Interval), Tasks{Epoch: 1}); len(out) != 0 {
		t.Fatalf("a late answer ends one more: %v", out)
	}
}

func TestIsolatedWorkerAboveWhatItAskedDiesAlone(t *testing.T) {
	c := mustNew(t, Config{})
	w := worker(1, 1, 3*gib)
	w.Own, w.Asked = "train", 2*gib
	if k := killed(t, c, 0, sample(20, w)); k == nil || k.Peak != 3*gib || k.Func != "train" || !strings.Contains(k.Err.Error(), "asked for 2.0 GiB") {
		t.Fatalf("%+v", k)
	}
	if c.Peak("train") != 3*gib || c.Peak("other") != 0 {
		t.Errorf("peaks %v", c.peaks)
	}
}

func TestLevelsWithSlack(t *testing.T) {
	c := mustNew(t, Config{MinFree: ^uint64(0)})
	for _, s := range []struct {
		percent float64
		want    Level
	}{{10, Normal}, {71, Spill}, {69, Spill}, {67, Normal}, {81, Pause}, {79, Pause}, {77, Spill}, {99, Terminate}, {94, Terminate}, {92, Pause}, {5, Normal}} {
		was := c.Level()
		told := false
		for _, e := range c.Step(0, sample(s.percent)) {
			if l, ok := e.(SetLevel); ok {
				told = true
				if l.Level != s.want {
					t.Errorf("at %v %% told %v", s.percent, l.Level)
				}
			}
		}
		if c.Level() != s.want || told != (was != s.want) {
			t.Errorf("at %v %%: %v, want %v; told %v", s.percent, c.Level(), s.want, told)
		}
	}
}

func TestLargeNodesKeepOnlyMinFree(t *testing.T) {
	c := mustNew(t, Config{})
	big := Sample{Used: 960 * gib, Limit: 1000 * gib} // 4 %, but 40 GiB
	if c.Step(0, big); c.Level() != Pause {
		t.Errorf("40 GiB free: %v", c.Level())
	}
	big.Used = 998 * gib
	if c.Step(0, big); c.Level() != Terminate {
		t.Errorf("2 GiB free: %v", c.Level())
	}
}

func TestNothingToEndIsReportedOnce(t *testing.T) {
	c := mustNew(t, Config{})
	d := WorkerSample{Worker: 1, Name: "driver", Driver: true, Bytes: 15 * gib}
	reports := 0
	for i := range int64(10) {
		for _, e := range c.Step(i*int64(Interval), sample(99, d)) {
			if r, ok := e.(Report); ok {
				reports++
				if !errors.Is(r.Err, errs.ErrOutOfMemory) || !strings.Contains(r.Err.Error(), "driver: 15 GiB") {
					t.Errorf("%v", r.Err)
				}
			}
		}
	}
	if reports != 1 {
		t.Fatalf("%d reports", reports)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, bad := range []Config{{Terminate: 1.5}, {Pause: 0.99}, {Spill: -1}} {
		if _, err := New(bad); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestProperties: below the threshold no worker is ended that keeps to the memory it asked for; above it at most
// one at a time; never the driver; never a working one while another is idle.
func TestProperties(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		c := mustNew(t, Config{})
		var killing ids.ClientID
		var since int64
		for i := range int64(rapid.IntRange(1, 60).Draw(t, "samples")) {
			now := i * int64(Interval)
			var ws []WorkerSample
			idle := map[ids.ClientID]bool{}
			for id := range rapid.IntRange(0, 5).Draw(t, "workers") {
				w := worker(id+1, rapid.IntRange(0, 2).Draw(t, "leases"), uint64(rapid.IntRange(1, 4).Draw(t, "bytes"))*gib)
				w.Driver = id == 4
				idle[w.Worker] = w.Leases == 0 && !w.Driver
				ws = append(ws, w)
			}
			percent := rapid.Float64Range(50, 100).Draw(t, "used")
			out := append([]Effect(nil), c.Step(now, sample(percent, ws...))...)
			for _, e := range out {
				if a, ok := e.(AskTasks); ok && rapid.Bool().Draw(t, "answers") {
					out = append(out, append([]Effect(nil), c.Step(now, Tasks{Epoch: a.Epoch})...)...)
				}
			}
			for _, e := range out {
				k, ok := e.(Kill)
				if !ok {
					continue
				}
				if percent < 90 || k.Worker == 5 {
					t.Fatalf("%d is ended at %v %%", k.Worker, percent)
				}
				if killing != 0 && now-since < int64(10*time.Second) {
					t.Fatalf("%d is ended while %d is", k.Worker, killing)
				}
				for w, is := range idle {
					if is && !idle[k.Worker] {
						t.Fatalf("%d works and is ended, %d is idle", k.Worker, w)
					}
				}
				killing, since = k.Worker, now
			}
			if killing != 0 && rapid.Bool().Draw(t, "gone") {
				c.Step(now, WorkerGone{Worker: killing})
				killing = 0
			}
		}
	})
}
