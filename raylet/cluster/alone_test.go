package cluster

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/sched"
	"mobula/wire"
)

const self ids.Home = 3

func newCore(t interface{ Fatal(...any) }, cfg CoreConfig) *Core {
	cfg.Config, cfg.Self, cfg.Random = best(), self, seeded(1)
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A node that is alone has no core between its owners and its scheduler, as far as either can tell: whatever they say passes as it is, in order, and nothing
// is added. So it is again when the last other node is gone and what was wanted before is over. One word is added for the scheduler: an owner that takes a number back
// which came behind a refusal is told that the class is feasible, since no answer to that number will say so.
func TestAloneEverythingPassesAsItIs(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		c := newCore(t, CoreConfig{})
		if rapid.Bool().Draw(t, "had a neighbour") {
			c.Step(1, NodeUp{Node: 4})
			c.Step(1, NodeReport{node(4, 5)})
			c.Step(1, NodeGone{Node: 4})
		}
		refused, asked := map[sched.ClassKey]bool{}, map[sched.ClassKey]bool{}
		for now := range int64(rapid.IntRange(1, 60).Draw(t, "steps")) {
			job := ids.JobID(self.ID(rapid.Uint64Range(1, 2).Draw(t, "job")))
			ev := Event(FromOwner{job, drawFromOwner(t, job)})
			var want Effect
			switch rapid.IntRange(0, 5).Draw(t, "who") {
			case 0, 1:
				m := drawFromScheduler(t, job)
				ev, want = FromScheduler{self, job, m}, ToOwner{job, m}
				switch m := m.(type) {
				case sched.Infeasible:
					refused[m.Key] = refused[m.Key] || !noWorker(m.Err)
					delete(asked, m.Key)
				case sched.Feasible:
					delete(refused, m.Key)
					delete(asked, m.Key)
				}
			case 2:
				n := node(self, rapid.Int64Range(-1, 3).Draw(t, "free"))
				n.Version, n.State = uint64(now+1), State(rapid.IntRange(0, int(Draining)).Draw(t, "state"))
				ev, want = NodeReport{n}, nil
			default:
				want = ToScheduler{self, job, ev.(FromOwner).Event}
			}
			for _, w := range wantsOf(ev) {
				if w.Backlog > 0 {
					asked[w.Key] = refused[w.Key]
				}
			}
			got := c.Step(1+now*int64(DefaultPatience), ev)
			if want == nil && len(got) == 0 || len(got) == 1 && reflect.DeepEqual(got[0], want) {
				continue
			}
			if ws := wantsOf(ev); len(ws) == 1 && ws[0].Backlog == 0 && asked[ws[0].Key] && reflect.DeepEqual(got, []Effect{want, ToOwner{job, sched.Feasible{Key: ws[0].Key}}}) {
				delete(refused, ws[0].Key)
				delete(asked, ws[0].Key)
				continue
			}
			t.Fatalf("%T%+v gives %+v", ev, ev, got)
		}
	})
}

func wantsOf(ev Event) []sched.Want {
	m, _ := ev.(FromOwner)
	switch m := m.Event.(type) {
	case sched.Want:
		return []sched.Want{m}
	case sched.Holdings:
		return m.Wants
	}
	return nil
}

func drawLease(t *rapid.T) ids.LeaseID {
	return ids.LeaseID(self.ID(rapid.Uint64Range(1, 6).Draw(t, "lease")))
}

func drawWant(t *rapid.T, job ids.JobID) sched.Want {
	w := sched.Want{Key: sched.ClassKey{Job: job, Class: sched.Class(rapid.IntRange(1, 3).Draw(t, "class"))}, Backlog: rapid.IntRange(0, 4).Draw(t, "backlog")}
	switch w.Key.Class {
	case 1:
		w.Opts = &wire.TaskOptions{Func: "f"}
	case 2:
		w.Opts = &wire.TaskOptions{Func: "g", Resources: []wire.Resource{{Name: sched.GPU, Amount: 1000}}}
	default:
		w.Opts = &wire.TaskOptions{Func: "wrong", Resources: []wire.Resource{{Amount: 1}}}
	}
	return w
}

func drawFromOwner(t *rapid.T, job ids.JobID) sched.Event {
	lease, worker := drawLease(t), ids.ClientID(self.ID(9))
	switch rapid.IntRange(0, 11).Draw(t, "event") {
	case 0:
		return sched.Return{Lease: lease}
	case 1:
		return sched.BlockCPU{Lease: lease}
	case 2:
		return sched.UnblockCPU{Lease: lease}
	case 3:
		return sched.ActorUp{Lease: lease}
	case 4:
		return sched.DrainWorker{Worker: worker}
	case 5:
		return sched.KillWorker{Worker: worker}
	case 6:
		return sched.OwnerRestarted{Job: job, Epoch: 7}
	case 7:
		return sched.DropJob{Job: job}
	case 8:
		h := sched.Holdings{Job: job, Epoch: rapid.Uint64Range(1, 2).Draw(t, "epoch")}
		for range rapid.IntRange(0, 2).Draw(t, "held") {
			h.Held = append(h.Held, sched.Held{Lease: drawLease(t), Key: sched.ClassKey{Job: job, Class: 1}})
		}
		if w := drawWant(t, job); w.Backlog > 0 {
			h.Wants = append(h.Wants, w)
		}
		return h
	default:
		return drawWant(t, job)
	}
}

func drawFromScheduler(t *rapid.T, job ids.JobID) sched.OwnerMsg {
	lease, key := drawLease(t), sched.ClassKey{Job: job, Class: sched.Class(rapid.IntRange(1, 3).Draw(t, "class"))}
	switch rapid.IntRange(0, 7).Draw(t, "message") {
	case 0:
		return sched.Reclaim{Lease: lease}
	case 1:
		return sched.Revoked{Lease: lease, Err: errs.New(errs.CodeWorkerCrashed, "gone")}
	case 2:
		return sched.Resumed{Lease: lease}
	case 3:
		code := rapid.SampledFrom([]errs.Code{errs.CodeUnschedulable, errs.CodeRuntimeSetup, errs.CodeInvalid}).Draw(t, "code")
		return sched.Infeasible{Key: key, Err: errs.New(code, "no")}
	case 4:
		return sched.Feasible{Key: key}
	case 5:
		return sched.Resync{Epoch: rapid.Uint64Range(1, 2).Draw(t, "epoch")}
	default:
		return sched.Granted{Key: key, Lease: lease, Worker: 9, Epoch: rapid.SampledFrom([]uint64{0, 0, 0, 7}).Draw(t, "epoch")}
	}
}
