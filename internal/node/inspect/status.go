package inspect

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"mobula/internal/direct/talk"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/objectstore"
	"mobula/raylet"
	"mobula/raylet/owner"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/task"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
	"mobula/telemetry/metrics"
	"mobula/wire"
)

const (
	partTime = time.Second     // what one component may take for its part of the status
	storeAge = 2 * time.Second // figures of the store are not counted more often: that looks at every object
)

// Status is the node at a glance. What does not answer in time is named, and missing.
func (n *Inspector) Status(ctx context.Context, _ Empty) (state.Status, error) {
	return n.Snapshot(ctx).Status, nil
}

// gather collects the parts of a status, which are asked for at once.
type gather struct {
	n   *Inspector
	ctx context.Context
	wg  sync.WaitGroup

	mu  sync.Mutex
	out metrics.Snapshot // guarded by mu
}

func (n *Inspector) newGather(ctx context.Context) *gather {
	g := &gather{n: n, ctx: ctx}
	g.out.Tasks, g.out.Actors, g.out.Resources, g.out.Jobs = map[string]int{}, map[string]int{}, map[string]state.Resource{}, []state.Job{}
	g.out.Changes, g.out.WorkersBy, g.out.AliveBy, g.out.PendingBy = map[string]uint64{}, map[string]int{}, map[string]int{}, map[string]int{}
	return g
}

// part asks one component; note takes its answer and is not called after a failure.
func part[T any](g *gather, name string, ask func(ctx context.Context) (T, error), note func(*metrics.Snapshot, T)) {
	g.wg.Go(func() {
		ctx, cancel := context.WithTimeout(g.ctx, partTime)
		defer cancel()
		v, err := ask(ctx)
		g.mu.Lock()
		defer g.mu.Unlock()
		if err != nil {
			g.out.Silent = append(g.out.Silent, name)
			return
		}
		note(&g.out, v)
	})
}

// Snapshot is the node as status and metrics show it.
func (n *Inspector) Snapshot(ctx context.Context) metrics.Snapshot {
	g := n.newGather(ctx)
	n.node.Outline(&g.out)
	for _, ow := range n.node.Owners() {
		g.job(ow)
	}
	g.raylet()
	part(g, "objectstore", n.storeFigures, func(s *metrics.Snapshot, st state.Store) { s.Store = st })
	g.wg.Wait()
	slices.SortFunc(g.out.Jobs, func(a, b state.Job) int { return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID)) })
	slices.Sort(g.out.Silent)
	return g.out
}

// figures are an owner's.
type figures struct {
	counts        owner.Counters
	gauges        owner.Gauges
	actors, tasks map[string]int
	alive, calls  map[string]int // by class
}

// underway adds the calls that go past the owner, and gives how many of each actor it does not know.
func (f *figures) underway(all []talk.Underway) map[ids.ActorID]int {
	pending := make(map[ids.ActorID]int)
	for i := range all {
		u := &all[i]
		if f.tasks[callState(u).String()]++; u.Known { // it counts it as waiting, unless it has just ended
			if waits := task.PendingActor.String(); f.tasks[waits] > 0 {
				f.tasks[waits]--
			}
			continue
		}
		f.counts.Submitted++
		pending[u.Spec.Actor]++
	}
	return pending
}

// job adds an owner's part.
func (g *gather) job(ow *Owner) {
	classes := g.n.node.Parts().Classes
	j := state.Job{ID: ow.Job.String(), Namespace: g.n.node.Namespace(ow.Job), Node: g.n.node.Listed()}
	for _, s := range g.n.node.Clients() {
		if s.Job == ow.Job && s.Role == wire.RoleDriver {
			j.PID = int(s.PID)
		}
	}
	part(g, ow.Ref.Name(), func(ctx context.Context) (figures, error) {
		g.n.node.TellEnded(ow.Job)
		under := g.n.node.Underway(ow.Job)
		return InOwner(ctx, ow, func(c *owner.Core) figures {
			f := figures{counts: c.Counters(), gauges: c.Gauges(), actors: map[string]int{}, tasks: map[string]int{}, alive: map[string]int{}, calls: map[string]int{}}
			c.States(func(s task.State, k int) { f.tasks[s.String()] = k })
			pending := f.underway(under)
			c.Actors(func(a owner.ActorView) bool {
				a.Pending += pending[a.ID]
				class := classes.Class(a.Opts)
				f.calls[class] += a.Pending
				if a.Foreign {
					return true // its own owner counts it, and does not know of calls from here
				}
				f.actors[a.State.String()]++
				if a.State == actor.Alive {
					f.alive[class]++
				}
				return true
			})
			return f
		})
	}, func(s *metrics.Snapshot, f figures) {
		j.Submitted, j.Finished, j.Failed, j.Retried = f.counts.Submitted, f.counts.Finished, f.counts.Failed, f.counts.Retried
		j.Objects, j.Tasks = f.gauges.Objects, f.tasks
		for k, v := range j.Tasks {
			s.Tasks[k] += v
		}
		for k, v := range f.actors {
			s.Actors[k] += v
		}
		for k, v := range f.alive {
			s.AliveBy[k] += v
		}
		for k, v := range f.calls {
			s.PendingBy[k] += v
		}
		s.InlineBytes += uint64(max(0, f.gauges.InlineBytes))
		s.Jobs = append(s.Jobs, j)
	})
}

// raylet adds the scheduler's and the pool's part.
func (g *gather) raylet() {
	type figures struct {
		total, free []wire.Resource
		leases      int
		workers     []pool.Info
	}
	part(g, "scheduler", func(ctx context.Context) (figures, error) {
		return inRaylet(ctx, g.n, func(c *raylet.Core) (f figures) {
			f.total, f.free, f.leases = c.Usage()
			f.workers = c.Workers()
			return f
		})
	}, func(s *metrics.Snapshot, f figures) {
		s.Leases, s.Workers = f.leases, len(f.workers)
		for i, r := range f.total {
			s.Resources[r.Name] = state.Resource{Total: Units(r), Free: Units(f.free[i])}
		}
		for _, w := range f.workers {
			s.WorkersBy[w.Slot.String()]++
		}
	})
}

// Units is an amount as people write it.
func Units(r wire.Resource) float64 {
	if r.Name == sched.Memory {
		return float64(r.Amount)
	}
	return float64(r.Amount) / 1000
}

func (n *Inspector) lastStore() state.Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.store
	s.Age = time.Since(n.storeAt).Nanoseconds()
	return s
}

// storeFigures gives the store's figures, not older than storeAge.
func (n *Inspector) storeFigures(ctx context.Context) (state.Store, error) {
	n.mu.Lock()
	fresh := time.Since(n.storeAt) < storeAge
	n.mu.Unlock()
	if fresh {
		return n.lastStore(), nil
	}
	st, err := inStore(ctx, n, (*objectstore.Core).Stats)
	if err != nil {
		return state.Store{}, err
	}
	s := state.Store{
		Limit: st.Limit, Held: st.Held, Backed: st.Backed, Sealed: st.Sealed, Writing: st.Granted, Pinned: st.Pinned, Args: st.Args,
		Spilled: st.Spilled, SpillGarbage: st.SpillGarbage, Fallback: st.FallbackBytes, Objects: st.Objects, InMemory: st.ObjectsInMemory, OnlySpilled: st.ObjectsSpilled,
		Waiting: st.WaitingCreates, WaitingArgs: st.WaitingArgs, Restoring: st.WaitingRestores + st.RestoresUnderWay,
		SpilledEver: st.SpilledBytes, RestoredEver: st.RestoredBytes, SpillErrors: st.SpillErrors, Lost: st.Lost,
		Reclaimed: st.ReclaimedBytes, Spills: st.Spills, Restores: st.Restores,
	}
	parts := n.node.Parts()
	if why := parts.Memory.Kept; why != nil {
		s.Asked, s.WhyLimit = parts.Asked, why.Error()
	}
	disk := parts.Spiller.Stats()
	s.SpillTime, s.RestoreTime = disk.WriteTime.Nanoseconds(), disk.ReadTime.Nanoseconds()
	for _, t := range disk.Targets {
		row := state.Target{URL: t.URL, Health: t.Health.String(), Bytes: t.Assigned}
		if t.Why != nil {
			row.Error = t.Why.Error()
		}
		s.SpillTargets = append(s.SpillTargets, row)
	}
	n.mu.Lock()
	n.store, n.storeAt = s, time.Now()
	n.mu.Unlock()
	return n.lastStore(), nil
}

// Tree is the supervision tree.
func (n *Inspector) Tree() []state.Component {
	tree := n.node.Parts().System.Tree()
	out := make([]state.Component, len(tree))
	for i, c := range tree {
		out[i] = state.Component{
			Path: c.Path, Kind: c.Kind, Name: c.Name, Restarts: c.Restarts, Escalations: c.Escalations, Poisoned: c.Poisoned,
			Depth: c.Depth, Bound: c.Bound, Handled: c.Handled, Waiting: c.Waiting,
		}
		if c.Err != nil {
			out[i].Error = c.Err.Error()
		}
	}
	return out
}
