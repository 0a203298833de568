package sched

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// TestTranscripts runs the scripts of testdata/transcripts: each block gives the scheduler one event, and below the dashes stands all that it
// then asks for. go test ./raylet/sched -run Transcripts -rewrite writes them anew.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		r := &transcript{classes: make(map[string]Want)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			r.t, r.d = t, d
			return r.run()
		})
	})
}

type transcript struct {
	t       *testing.T
	d       *datadriven.TestData
	c       *Core
	now     int64
	classes map[string]Want // by name
}

func (r *transcript) run() string {
	switch r.d.Cmd {
	case "node": // node CPU=2 GPU=1
		return r.node()
	case "want": // want CLASS N [job=J] [CPU=N] [GPU=N]
		return r.want()
	case "worker": // worker LEASE CLIENT: the pool has a slot
		return r.step(WorkerReady{Lease: ids.LeaseID(r.number(0)), Worker: ids.ClientID(r.number(1))})
	case "return":
		return r.step(Return{Lease: ids.LeaseID(r.number(0))})
	case "blocked":
		return r.step(BlockCPU{Lease: ids.LeaseID(r.number(0))})
	case "unblocked":
		return r.step(UnblockCPU{Lease: ids.LeaseID(r.number(0))})
	case "actor-up":
		return r.step(ActorUp{Lease: ids.LeaseID(r.number(0))})
	case "worker-dies": // worker-dies CLIENT LEASE...
		ev := WorkerGone{Worker: ids.ClientID(r.number(0)), Err: errs.New(errs.CodeWorkerCrashed, "its process was killed")}
		for i := range r.d.CmdArgs[1:] {
			ev.Leases = append(ev.Leases, ids.LeaseID(r.number(i+1)))
		}
		return r.step(ev)
	case "memory-short":
		return r.step(SetPaused{On: true})
	case "memory-again":
		return r.step(SetPaused{})
	case "pass":
		wait, err := time.ParseDuration(r.d.CmdArgs[0].Key)
		if err != nil {
			r.d.Fatalf(r.t, "%v", err)
		}
		r.now += int64(wait)
		return r.step(Tick{})
	case "job-ends":
		return r.step(DropJob{Job: ids.JobID(r.number(0))})
	}
	r.d.Fatalf(r.t, "there is no command %q", r.d.Cmd)
	return ""
}

func (r *transcript) node() string {
	c, out, err := New(Config{Resources: r.resources(0)})
	if err != nil {
		return err.Error() + "\n"
	}
	r.c, r.now = c, 1e18
	return r.lines(out)
}

func (r *transcript) want() string {
	name := r.d.CmdArgs[0].Key
	w, known := r.classes[name]
	if !known {
		job := 1
		if r.d.HasArg("job") {
			r.d.ScanArgs(r.t, "job", &job)
		}
		w = Want{Key: ClassKey{Job: ids.JobID(job), Class: Class(len(r.classes) + 1)}, Opts: &wire.TaskOptions{Func: name, Resources: r.resources(2)}}
		if r.d.HasArg("actor") {
			w.Kind = wire.TaskActorCreate
		}
		r.classes[name] = w
	}
	w.Backlog = r.number(1)
	return r.step(w)
}

// resources reads CPU=2 and the like, from the i-th argument on; nil: none is given.
func (r *transcript) resources(from int) []wire.Resource {
	var out []wire.Resource
	for _, a := range r.d.CmdArgs[from:] {
		if a.Key == "job" || len(a.Vals) == 0 {
			continue
		}
		n, err := strconv.ParseFloat(a.Vals[0], 64)
		if err != nil {
			r.d.Fatalf(r.t, "%s: %v", a.Key, err)
		}
		out = append(out, wire.Resource{Name: a.Key, Amount: int64(n * 1000)})
	}
	return out
}

func (r *transcript) number(i int) int {
	n, err := strconv.Atoi(r.d.CmdArgs[i].Key)
	if err != nil {
		r.d.Fatalf(r.t, "%v", err)
	}
	return n
}

func (r *transcript) step(ev Event) string {
	r.now += int64(time.Microsecond)
	out := r.lines(r.c.Step(r.now, ev))
	if err := r.c.validate(); err != nil {
		r.t.Fatalf("after %T: %v", ev, err)
	}
	return out
}

func (r *transcript) lines(out []Effect) string {
	var b strings.Builder
	for _, e := range out {
		switch e := e.(type) {
		case ToOwner:
			fmt.Fprintf(&b, "owner of job %v <- %s\n", e.Job, r.message(e.Msg))
		case NeedWorker:
			fmt.Fprintf(&b, "pool <- a worker for lease %v\n", e.Lease)
		case ReleaseWorker:
			fmt.Fprintf(&b, "pool <- lease %v is over\n", e.Lease)
		case After:
			fmt.Fprintf(&b, "timer in %v\n", e.D)
		default:
			fmt.Fprintf(&b, "%T\n", e)
		}
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func (r *transcript) message(m any) string {
	switch m := m.(type) {
	case Granted:
		return fmt.Sprintf("lease %v of worker %v for %s", m.Lease, m.Worker, r.name(m.Key))
	case Reclaim:
		return fmt.Sprintf("return lease %v when its work is done", m.Lease)
	case Revoked:
		return fmt.Sprintf("lease %v is over: %v", m.Lease, m.Err)
	case Resumed:
		return fmt.Sprintf("lease %v has its CPU again", m.Lease)
	case Infeasible:
		return fmt.Sprintf("%s can never run here: %v", r.name(m.Key), m.Err)
	}
	return fmt.Sprintf("%T", m)
}

func (r *transcript) name(k ClassKey) string {
	for name, w := range r.classes {
		if w.Key == k {
			return name
		}
	}
	return fmt.Sprint(k)
}
