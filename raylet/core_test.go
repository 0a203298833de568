package raylet

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
	"mobula/wire"
)

func mustNew(t testing.TB, cfg Config) (*Core, []Effect) {
	t.Helper()
	n := 0
	cfg.Resources = []wire.Resource{{Name: sched.CPU, Amount: 2000}}
	cfg.Pool.NewToken = func() []byte { n++; return fmt.Appendf(nil, "t%d", n) }
	c, first, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var out []Effect
	for _, ev := range first {
		out = append(out, step(c, ev)...)
	}
	return c, out
}

func step(c *Core, ev Event) []Effect { return slices.Clone(c.Step(0, ev)) }

// only gives the effects of one type.
func only[T any](es []Effect) (out []T) {
	for _, e := range es {
		if t, ok := e.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// told gives the messages of one type to owners.
func told[T any](es []Effect) (out []T) {
	for _, e := range only[ToOwner](es) {
		if m, ok := e.Msg.(T); ok {
			out = append(out, m)
		}
	}
	return out
}

var key = sched.ClassKey{Job: 1, Class: 1}

func want(n int) sched.Want {
	return sched.Want{Key: key, Opts: &wire.TaskOptions{Func: "f"}, Backlog: n}
}

func TestFromWantToGrant(t *testing.T) {
	c, _ := mustNew(t, Config{})
	starts := only[StartProcess](step(c, pool.JobStarted{Job: 1}))
	if len(starts) != 1 {
		t.Fatalf("%d processes are started ahead", len(starts))
	}
	if es := step(c, want(5)); len(told[sched.Granted](es)) != 0 {
		t.Fatal("granted before there is a worker")
	}
	es := step(c, pool.Registered{Client: 40, Token: starts[0].Token, PID: 7})
	grants := told[sched.Granted](es)
	if len(grants) != 2 || grants[0].Worker != 40 || grants[0].Key != key {
		t.Fatalf("%+v", es)
	}
	if _, first := es[0].(Admit); !first {
		t.Fatalf("a lease is granted on a connection that is not admitted yet: %+v", es)
	}
	if ws := c.Workers(); len(ws) != 1 || ws[0].PID != 7 || len(ws[0].Leases) != 2 || ws[0].State != pool.Ready {
		t.Fatalf("%+v", ws)
	}
	if e := c.Explain(key); e.Backlog != 3 || e.Leases != 2 {
		t.Fatalf("%+v", e)
	}
	if s, p := c.Counters(); s.Grants != 2 || p.Started != 1 {
		t.Fatalf("%+v %+v", s, p)
	}
}

func TestMemoryKillIsToldToTheOwnerWithItsPeak(t *testing.T) {
	c, _ := mustNew(t, Config{})
	st := only[StartProcess](step(c, pool.JobStarted{Job: 1}))[0]
	step(c, want(1))
	step(c, pool.Registered{Client: 40, Token: st.Token})
	why := errs.New(errs.CodeOutOfMemory, "too much")
	if k := only[KillProcess](step(c, sched.KillWorker{Worker: 40, Err: why, Peak: 5})); len(k) != 1 || k[0].Worker != st.Worker {
		t.Fatalf("%v", k)
	}
	es := step(c, pool.Exited{Worker: st.Worker, Exit: pool.Exit{Signal: "killed"}})
	if r := told[sched.Revoked](es); len(r) != 1 || r[0].Err != why || r[0].Peak != 5 || r[0].Worker != 40 {
		t.Fatalf("%+v", es)
	}
	if len(only[StartProcess](es)) != 1 {
		t.Fatal("the class still wants and no new worker is started")
	}
}

func TestForcedCancelDrainsTheWorker(t *testing.T) {
	c, _ := mustNew(t, Config{})
	st := only[StartProcess](step(c, pool.JobStarted{Job: 1}))[0]
	step(c, want(2))
	g := told[sched.Granted](step(c, pool.Registered{Client: 40, Token: st.Token}))
	es := step(c, sched.DrainWorker{Lease: g[0].Lease, Worker: 40, Err: errs.New(errs.CodeCancelled, "x")})
	if r := told[sched.Reclaim](es); len(r) != 1 || r[0].Lease != g[1].Lease {
		t.Fatalf("%+v", es)
	}
	es = step(c, sched.Return{Lease: g[1].Lease})
	if m := only[SendDrain](es); len(m) != 1 || m[0].Client != 40 || m[0].Worker != st.Worker {
		t.Fatalf("%+v", es)
	}
	after := only[After](es)
	if len(after) == 0 || after[0].D != pool.DefaultGrace {
		t.Fatalf("%+v", es)
	}
	if k := only[KillProcess](step(c, after[0].Ev)); len(k) != 1 {
		t.Fatal("the abandoned task keeps the process")
	}
}

func TestNoWorkerFailsTheClass(t *testing.T) {
	c, _ := mustNew(t, Config{})
	st := only[StartProcess](step(c, pool.JobStarted{Job: 1}))[0]
	step(c, want(5))
	es := step(c, pool.StartFailed{Worker: st.Worker, Err: errors.New("no such file")})
	if m := told[sched.Infeasible](es); len(m) != 1 || !errors.Is(m[0].Err, errs.ErrRuntimeSetup) {
		t.Fatalf("%+v", es)
	}
}

func TestJobEndLeavesNothing(t *testing.T) {
	c, _ := mustNew(t, Config{})
	st := only[StartProcess](step(c, pool.JobStarted{Job: 1}))[0]
	step(c, want(5))
	step(c, pool.Registered{Client: 40, Token: st.Token})
	es := step(c, pool.JobEnded{Job: 1})
	if d, after := only[SendDrain](es), only[After](es); len(d) != 1 || len(after) != 1 || len(only[Terminate](step(c, after[0].Ev))) != 1 {
		t.Fatalf("the worker goes on: %+v", es)
	}
	step(c, pool.Exited{Worker: st.Worker})
	total, free, leases := c.Usage()
	if leases != 0 || total[0] != free[0] || len(c.Workers()) != 0 {
		t.Fatalf("%d leases, %v of %v free", leases, free, total)
	}
}

// A new core is given the processes and asks the owners; a lease that the owner holds goes on, one
// whose worker went meanwhile is revoked, and numbers are not used again.
// What a job is told names the opening that it is of, and the end of one before ends nothing.
func TestAJobThatIsOpenedAgain(t *testing.T) {
	granted := func(es []Effect, want uint64) {
		t.Helper()
		tos := only[ToOwner](es)
		if len(told[sched.Granted](es)) == 0 {
			t.Fatalf("nothing is granted: %+v", es)
		}
		for _, to := range tos {
			if to.Opening != want {
				t.Errorf("%+v is of opening %d, want %d", to.Msg, to.Opening, want)
			}
		}
	}
	start := func(c *Core, es []Effect, client ids.ClientID) []Effect {
		t.Helper()
		starts := only[StartProcess](es)
		if len(starts) != 1 {
			t.Fatalf("%d processes are started", len(starts))
		}
		return step(c, pool.Registered{Client: client, Token: starts[0].Token, PID: 7})
	}
	c, _ := mustNew(t, Config{})
	es := step(c, pool.JobStarted{Job: 1, Opening: 3})
	step(c, want(1))
	granted(start(c, es, 40), 3)
	step(c, pool.JobEnded{Job: 1, Opening: 3})
	es = step(c, pool.JobStarted{Job: 1, Opening: 4})
	step(c, want(1))
	granted(start(c, es, 41), 4)

	c, _ = mustNew(t, Config{Epoch: 1, Jobs: []pool.JobStarted{{Job: 1, Opening: 4}}}) // while these two were on their way
	step(c, pool.JobEnded{Job: 1, Opening: 3})
	step(c, pool.JobStarted{Job: 1, Opening: 4})
	granted(start(c, step(c, sched.Holdings{Job: 1, Epoch: 1, Wants: []sched.Want{want(1)}}), 42), 4)
}

func TestRebuild(t *testing.T) {
	c, out := mustNew(t, Config{
		FirstLease: 100, Epoch: 2,
		Pool: pool.Config{FirstWorker: 9},
		Jobs: []pool.JobStarted{{Job: 1}},
		Live: []pool.Live{{StartProcess: StartProcess{Worker: 3, Token: []byte("x"), Job: 1, Language: wire.LangGo, Slot: sched.SlotTask}, Client: 40, PID: 7}},
	})
	if r := told[sched.Resync](out); len(r) != 1 || r[0].Epoch != 2 || len(only[StartProcess](out)) != 0 {
		t.Fatalf("%+v", out)
	}
	es := step(c, want(4))
	if len(told[sched.Granted](es)) != 0 {
		t.Fatal("granted before the owner said what it holds")
	}
	held := func(l ids.LeaseID, w ids.ClientID) sched.Held {
		return sched.Held{Lease: l, Key: key, Opts: want(1).Opts, Worker: w}
	}
	es = step(c, sched.Holdings{Job: 1, Epoch: 2, Held: []sched.Held{held(5, 40), held(6, 39)}, Wants: []sched.Want{want(4)}})
	if r := told[sched.Revoked](es); len(r) != 1 || r[0].Lease != 6 {
		t.Fatalf("%+v", es)
	}
	if g := told[sched.Granted](es); len(g) != 1 || g[0].Lease != 101 || g[0].Worker != 40 {
		t.Fatalf("one CPU of two is free: %+v", es)
	}
}

func TestBadConfigurations(t *testing.T) {
	token := func() []byte { return nil }
	for _, cfg := range []Config{
		{}, {Resources: []wire.Resource{{Name: sched.CPU, Amount: 1000}}},
		{Resources: []wire.Resource{{Name: sched.CPU, Amount: -1}}, Pool: pool.Config{CPUs: 1, NewToken: token}},
	} {
		if _, _, err := New(cfg); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if err := CheckResources([]wire.Resource{{Name: sched.GPU, Amount: 1}}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a node without CPU: %v", err)
	}
	if err := CheckResources([]wire.Resource{{Name: sched.CPU, Amount: 1}}); err != nil {
		t.Error(err)
	}
}

func TestUnknownEventIsAFault(t *testing.T) {
	c, _ := mustNew(t, Config{})
	defer func() {
		if recover() == nil {
			t.Fatal("a message to nobody is swallowed")
		}
	}()
	c.Step(0, time.Second)
}

// The owner of a job on another node says nothing of the leases and workers of other jobs.
func TestAnOwnerElsewhereSpeaksForItsJobAlone(t *testing.T) {
	c, _ := mustNew(t, Config{})
	st := only[StartProcess](step(c, pool.JobStarted{Job: 1}))[0]
	step(c, want(1))
	l := told[sched.Granted](step(c, pool.Registered{Client: 40, Token: st.Token}))[0].Lease
	all := []sched.Event{
		sched.BlockCPU{Lease: l}, sched.UnblockCPU{Lease: l}, sched.ActorUp{Lease: l},
		sched.DrainWorker{Lease: l, Worker: 40}, sched.KillWorker{Worker: 40}, sched.Return{Lease: l},
	}
	for _, ev := range all {
		es := step(c, OfJob{Job: 2, Event: ev})
		if r := only[Refused](es); len(es) != 1 || len(r) != 1 || !errors.Is(r[0].Err, errs.ErrPermission) {
			t.Errorf("%T of the owner of another job: %+v", ev, es)
		}
	}
	if e := c.Explain(key); e.Leases != 1 || c.Workers()[0].State != pool.Ready {
		t.Fatalf("%+v, %+v", e, c.Workers())
	}
	for _, ev := range all {
		if r := only[Refused](step(c, OfJob{Job: 1, Event: ev})); len(r) > 0 {
			t.Errorf("%T of its own owner: %+v", ev, r)
		}
	}
	for _, ev := range []sched.Event{sched.Return{Lease: l}, sched.KillWorker{Worker: 99}} { // over, and never there
		if es := step(c, OfJob{Job: 2, Event: ev}); len(only[Refused](es)) > 0 {
			t.Errorf("%T: %+v", ev, es)
		}
	}
}

// The life of an anonymous actor's lease: want, grant, up, end. The scheduler does no more for an actor's
// creation.
func BenchmarkActorLease(b *testing.B) {
	c, _ := mustNew(b, Config{})
	step(c, pool.JobStarted{Job: 1, Tasks: 2, Actors: 3})
	w := sched.Want{Key: key, Opts: &wire.TaskOptions{Func: "A"}, Kind: wire.TaskActorCreate, Backlog: 1}
	b.ReportAllocs()
	for b.Loop() {
		var l ids.LeaseID
		for _, e := range c.Step(0, w) {
			if o, ok := e.(ToOwner); ok {
				l = o.Msg.(sched.Granted).Lease
			}
		}
		c.Step(0, sched.ActorUp{Lease: l})
		c.Step(0, sched.Return{Lease: l})
	}
}
