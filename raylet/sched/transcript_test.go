package sched

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/transcript"
	"mobula/wire"
)

// TestTranscripts runs the stories of testdata/transcripts (package transcript): events for the scheduler, and its effects.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(*testing.T) func(transcript.Block) []string {
		s := &story{classes: make(map[string]Want)}
		return func(b transcript.Block) []string {
			s.Block = b
			return s.run()
		}
	})
}

// story is a scheduler, and the names that the classes have.
type story struct {
	transcript.Block
	c       *Core
	now     int64
	classes map[string]Want // by name
}

func (r *story) run() []string {
	switch r.Cmd {
	case "node": // node CPU=2 GPU=1
		return r.node()
	case "want": // want CLASS N [job=J] [CPU=N] [GPU=N]
		return r.want()
	case "worker": // worker LEASE CLIENT: the pool has a slot
		return r.step(WorkerReady{Lease: ids.LeaseID(r.Number(0)), Worker: ids.ClientID(r.Number(1))})
	case "return":
		return r.step(Return{Lease: ids.LeaseID(r.Number(0))})
	case "blocked":
		return r.step(BlockCPU{Lease: ids.LeaseID(r.Number(0))})
	case "unblocked":
		return r.step(UnblockCPU{Lease: ids.LeaseID(r.Number(0))})
	case "actor-up":
		return r.step(ActorUp{Lease: ids.LeaseID(r.Number(0))})
	case "worker-dies": // worker-dies CLIENT LEASE...
		ev := WorkerGone{Worker: ids.ClientID(r.Number(0)), Err: errs.New(errs.CodeWorkerCrashed, "its process was killed")}
		for i := range r.Words()[1:] {
			ev.Leases = append(ev.Leases, ids.LeaseID(r.Number(i+1)))
		}
		return r.step(ev)
	case "memory-short":
		return r.step(SetPaused{On: true})
	case "memory-again":
		return r.step(SetPaused{})
	case "pass":
		r.now += int64(r.Duration(0))
		return r.step(Tick{})
	case "job-ends":
		return r.step(DropJob{Job: ids.JobID(r.Number(0))})
	}
	r.Unknown()
	return nil
}

func (r *story) node() []string {
	c, out, err := New(Config{Resources: r.resources()})
	if err != nil {
		return []string{err.Error()}
	}
	r.c, r.now = c, 1e18
	return r.lines(out)
}

func (r *story) want() []string {
	name := r.Word(0)
	w, known := r.classes[name]
	if !known {
		key := ClassKey{Job: ids.JobID(r.Int("job", 1)), Class: Class(len(r.classes) + 1)}
		w = Want{Key: key, Opts: &wire.TaskOptions{Func: name, Resources: r.resources()}}
		if r.Has("actor") {
			w.Kind = wire.TaskActorCreate
		}
		r.classes[name] = w
	}
	w.Backlog = r.Number(1)
	return r.step(w)
}

// resources reads CPU=2 and the like; nil: none is given.
func (r *story) resources() []wire.Resource {
	var out []wire.Resource
	for _, name := range r.Options() {
		if name == "job" {
			continue
		}
		n, err := strconv.ParseFloat(r.Text(name, ""), 64)
		if err != nil {
			r.Fatalf("%s: %v", name, err)
		}
		out = append(out, wire.Resource{Name: name, Amount: int64(n * 1000)})
	}
	return out
}

func (r *story) step(ev Event) []string {
	r.now += int64(time.Microsecond)
	out := r.lines(r.c.Step(r.now, ev))
	if err := r.c.Validate(); err != nil {
		r.T.Fatalf("after %T: %v", ev, err)
	}
	return out
}

func (r *story) lines(effects []Effect) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, e := range effects {
		switch e := e.(type) {
		case ToOwner:
			say("owner of job %v <- %s", e.Job, r.message(e.Msg))
		case NeedWorker:
			say("pool <- a worker for lease %v", e.Lease)
		case ReleaseWorker:
			say("pool <- lease %v is over", e.Lease)
		case After:
			say("timer in %v", e.D)
		default:
			say("%T", e)
		}
	}
	return out
}

func (r *story) message(m any) string {
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

func (r *story) name(k ClassKey) string {
	for name, w := range r.classes {
		if w.Key == k {
			return name
		}
	}
	return fmt.Sprint(k)
}
