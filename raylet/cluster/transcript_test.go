package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/transcript"
	"mobula/raylet/sched"
	"mobula/wire"
)

// TestTranscripts runs the stories of testdata/transcripts (package transcript): events for the core of node 1, and its effects. There is one job, whose owner is here.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(*testing.T) func(transcript.Block) []string {
		s := &story{classes: make(map[string]sched.Want), versions: make(map[ids.Home]uint64)}
		return func(b transcript.Block) []string {
			s.Block = b
			return s.run()
		}
	})
}

// story is a core, and the names that the classes have.
type story struct {
	transcript.Block
	c        *Core
	now      int64
	classes  map[string]sched.Want // by name
	versions map[ids.Home]uint64
}

var storyJob = ids.JobID(ids.Home(1).ID(1))

func (r *story) run() []string {
	switch r.Cmd {
	case "core": // core [wait=DURATION]
		return r.core()
	case "core-again": // the core is rebuilt; nodes=(N...) live
		ev := Restored{Jobs: []ids.JobID{storyJob}, Epoch: uint64(r.Int("epoch", 9))}
		for _, n := range r.List("nodes") {
			ev.Nodes = append(ev.Nodes, r.node(n))
		}
		r.core()
		return r.step(ev)
	case "up":
		return r.step(NodeUp{r.node(r.Word(0))})
	case "gone":
		return r.step(NodeGone{r.node(r.Word(0))})
	case "report": // report N cpus=N free=N [gpus=N] [last=LEASE] [waits=(CLASS, N)] [draining] [hot]
		return r.report()
	case "want": // want CLASS N [CPU=N] [GPU=N] [spread]
		return r.owner(r.want(r.Word(0), r.Number(1)))
	case "locality": // locality CLASS bytes=(NODE, BYTES, ...)
		ev, args := Locality{Key: r.want(r.Word(0), 0).Key}, r.List("bytes")
		for i := 0; i < len(args); i += 2 {
			n, _ := strconv.Atoi(args[i+1])
			ev.Args = append(ev.Args, Held{r.node(args[i]), uint64(n)})
		}
		return r.step(ev)
	case "granted": // granted LEASE CLASS [epoch=N]
		l := r.lease(r.Word(0))
		return r.sched(l.Home(), sched.Granted{Key: r.want(r.Word(1), 0).Key, Lease: l, Worker: ids.ClientID(l.Home().ID(50)), Epoch: uint64(r.Int("epoch", 0))})
	case "return":
		return r.owner(sched.Return{Lease: r.lease(r.Word(0))})
	case "blocked":
		return r.owner(sched.BlockCPU{Lease: r.lease(r.Word(0))})
	case "drain-worker": // drain-worker NODE
		return r.owner(sched.DrainWorker{Worker: ids.ClientID(r.node(r.Word(0)).ID(50))})
	case "infeasible": // infeasible NODE CLASS [setup]
		err := errs.New(errs.CodeUnschedulable, "node %s has too little", r.Word(0))
		if r.Has("setup") {
			err = errs.New(errs.CodeRuntimeSetup, "node %s starts no worker", r.Word(0))
		}
		return r.sched(r.node(r.Word(0)), sched.Infeasible{Key: r.want(r.Word(1), 0).Key, Err: err})
	case "feasible":
		return r.sched(r.node(r.Word(0)), sched.Feasible{Key: r.want(r.Word(1), 0).Key})
	case "resync": // resync NODE EPOCH: its scheduler was restarted
		return r.sched(r.node(r.Word(0)), sched.Resync{Epoch: uint64(r.Number(1))})
	case "holdings": // holdings EPOCH held=(LEASE...) wants=(CLASS, N...) [restarted=EPOCH]
		return r.holdings()
	case "owner-restarted":
		return r.owner(sched.OwnerRestarted{Job: storyJob, Epoch: uint64(r.Number(0))})
	case "job-closed":
		return r.step(JobClosed{r.node(r.Word(0)), storyJob})
	case "abandon": // abandon NODE: it does not answer, and its life is not over
		return r.step(JobAbandoned{r.node(r.Word(0)), storyJob})
	case "job-ends":
		return append(r.owner(sched.DropJob{Job: storyJob}), r.step(JobEnded{storyJob})...)
	case "pass":
		r.now += int64(r.Duration(0))
		return r.step(Timer{})
	}
	r.Unknown()
	return nil
}

func (r *story) core() []string {
	cfg := CoreConfig{Config: best(), Self: 1, Random: seeded(1)}
	cfg.WaitForNodes, _ = time.ParseDuration(r.Text("wait", "0s"))
	c, err := New(cfg)
	if err != nil {
		r.Fatalf("%v", err)
	}
	r.c, r.now = c, max(r.now, 1e18)
	return nil
}

func (r *story) node(s string) ids.Home {
	n, err := strconv.Atoi(s)
	if err != nil {
		r.Fatalf("%v", err)
	}
	return ids.Home(n)
}

func (r *story) lease(s string) ids.LeaseID {
	l, err := ids.ParseNumber[ids.LeaseID](s)
	if err != nil {
		r.Fatalf("%v", err)
	}
	return l
}

func (r *story) report() []string {
	id := r.node(r.Word(0))
	r.versions[id]++
	n := Node{ID: id, Version: r.versions[id], Total: amounts(sched.CPU, 1000*r.Int("cpus", 4)), Free: amounts(sched.CPU, 1000*r.Int("free", r.Int("cpus", 4)))}
	if g := r.Int("gpus", 0); g > 0 {
		n.Total, n.Free = append(n.Total, amounts(sched.GPU, 1000*g)...), append(n.Free, amounts(sched.GPU, 1000*g)...)
	}
	if r.Has("draining") {
		n.State = Draining
	}
	if r.Has("hot") {
		n.Store = Store{Limit: 100, Held: 90}
	}
	if r.Has("last") {
		n.Last = r.lease(r.Text("last", ""))
	}
	if w := r.List("waits"); len(w) == 2 {
		want, count := r.want(w[0], 0), 0
		count, _ = strconv.Atoi(w[1])
		s, _ := ShapeOf(want.Opts, want.Kind)
		n.Backlog = []Backlog{{s, count}}
	}
	return r.step(NodeReport{n})
}

func (r *story) want(name string, n int) sched.Want {
	w, known := r.classes[name]
	if !known {
		w = sched.Want{Key: sched.ClassKey{Job: storyJob, Class: sched.Class(len(r.classes) + 1)}, Opts: &wire.TaskOptions{Func: name, Spread: r.Has("spread")}}
		for _, what := range []string{sched.CPU, sched.GPU} {
			if r.Has(what) {
				w.Opts.Resources = append(w.Opts.Resources, wire.Resource{Name: what, Amount: int64(1000 * r.Int(what, 0))})
			}
		}
		r.classes[name] = w
	}
	w.Backlog = n
	return w
}

func (r *story) holdings() []string {
	h := sched.Holdings{Job: storyJob, Epoch: uint64(r.Number(0)), Restarted: uint64(r.Int("restarted", 0))}
	for _, s := range r.List("held") {
		l := r.lease(s)
		h.Held = append(h.Held, sched.Held{Lease: l, Key: r.want(r.Text("of", "square"), 0).Key, Opts: r.want(r.Text("of", "square"), 0).Opts, Worker: ids.ClientID(l.Home().ID(50))})
	}
	wants := r.List("wants")
	for i := 0; i+1 < len(wants); i += 2 {
		n, _ := strconv.Atoi(wants[i+1])
		h.Wants = append(h.Wants, r.want(wants[i], n))
	}
	return r.owner(h)
}

func (r *story) owner(ev sched.Event) []string { return r.step(FromOwner{storyJob, ev}) }

func (r *story) sched(n ids.Home, m sched.OwnerMsg) []string {
	return r.step(FromScheduler{n, storyJob, m})
}

func (r *story) step(ev Event) []string {
	r.now += int64(time.Microsecond)
	out := r.lines(r.c.Step(r.now, ev))
	if err := r.c.validate(); err != nil {
		r.T.Fatalf("after %T: %v", ev, err)
	}
	return out
}

func (r *story) lines(effects []Effect) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, e := range effects {
		switch e := e.(type) {
		case ToScheduler:
			say("node %v <- %s", e.Node, r.event(e.Event))
		case ToOwner:
			say("owner <- %s", r.message(e.Msg))
		case OpenJob:
			say("node %v <- a job is opened", e.Node)
		case CloseJob:
			say("node %v <- the job is closed", e.Node)
		case After:
			say("timer in %v", e.D)
		}
	}
	return out
}

func (r *story) event(ev sched.Event) string {
	switch ev := ev.(type) {
	case sched.Want:
		return fmt.Sprintf("%d more of %s", ev.Backlog, r.name(ev.Key))
	case sched.Return:
		return fmt.Sprintf("lease %v is over", ev.Lease)
	case sched.BlockCPU:
		return fmt.Sprintf("lease %v gives its CPU back", ev.Lease)
	case sched.DrainWorker:
		return fmt.Sprintf("worker %v is to end", ev.Worker)
	case sched.OwnerRestarted:
		return fmt.Sprintf("say again what is granted, epoch %d", ev.Epoch)
	case sched.Holdings:
		var parts []string
		for _, h := range ev.Held {
			parts = append(parts, fmt.Sprintf("lease %v", h.Lease))
		}
		for _, w := range ev.Wants {
			parts = append(parts, r.event(w))
		}
		return fmt.Sprintf("held in epoch %d: %s", ev.Epoch, strings.Join(parts, ", "))
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", ev), "sched.")
}

func (r *story) message(m sched.OwnerMsg) string {
	switch m := m.(type) {
	case sched.Granted:
		return fmt.Sprintf("lease %v for %s", m.Lease, r.name(m.Key))
	case sched.Reclaim:
		return fmt.Sprintf("lease %v is to come back", m.Lease)
	case sched.Revoked:
		return fmt.Sprintf("lease %v is over: %v", m.Lease, m.Err)
	case sched.Infeasible:
		return fmt.Sprintf("%s can not run: %v", r.name(m.Key), m.Err)
	case sched.Feasible:
		return fmt.Sprintf("%s can run", r.name(m.Key))
	case sched.Resync:
		return fmt.Sprintf("say what is held, epoch %d", m.Epoch)
	case sched.Awaited:
		of := make([]string, len(m.Leases))
		for i, p := range m.Leases {
			of[i] = fmt.Sprintf("%d of node %v", p.N, p.Node)
		}
		return fmt.Sprintf("leases for %s are yet to come: %s", r.name(m.Key), strings.Join(of, ", "))
	}
	return fmt.Sprintf("%T", m)
}

func (r *story) name(k sched.ClassKey) string {
	for name, w := range r.classes {
		if w.Key == k {
			return name
		}
	}
	return fmt.Sprint(k)
}
