package node

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mobula/internal/state"
	"mobula/objectstore"
	"mobula/raylet"
	"mobula/raylet/owner"
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

// statusOf is the node at a glance. What does not answer in time is named, and missing.
func (n *Node) statusOf(ctx context.Context, _ empty) (state.Status, error) {
	return n.snapshot(ctx).Status, nil
}

// gather collects the parts of a status, which are asked for at once.
type gather struct {
	n   *Node
	ctx context.Context
	wg  sync.WaitGroup

	mu  sync.Mutex
	out metrics.Snapshot // guarded by mu
}

// part asks one component; store notes its answer and is not called after a failure.
func (g *gather) part(name string, ask func(ctx context.Context) error, store func(*metrics.Snapshot)) {
	g.wg.Go(func() {
		ctx, cancel := context.WithTimeout(g.ctx, partTime)
		defer cancel()
		err := ask(ctx)
		g.mu.Lock()
		defer g.mu.Unlock()
		if err != nil {
			g.out.Silent = append(g.out.Silent, name)
			return
		}
		store(&g.out)
	})
}

// snapshot is the node as status and metrics show it.
func (n *Node) snapshot(ctx context.Context) metrics.Snapshot {
	o := &n.obs
	g := &gather{n: n, ctx: ctx}
	g.out.Status = state.Status{
		Node: n.cfg.Name, Address: n.Address(), PID: os.Getpid(), Version: Build(), Started: o.started, Now: time.Now().UnixNano(),
		Dir: n.dir, Metrics: n.MetricsURL(), Control: n.control(), Restarts: n.sys.Restarts(), Clients: len(n.clients.all()),
		Tasks: map[string]int{}, Actors: map[string]int{}, Resources: map[string]state.Resource{}, Jobs: []state.Job{},
	}
	g.out.Changes, g.out.WorkersBy = map[string]uint64{}, map[string]int{}
	if o.rec != nil {
		st := o.rec.Stats()
		g.out.Events = state.Events{Recorded: st.Recorded, Kept: st.Kept, Dropped: st.Dropped}
		for s, k := range st.States {
			g.out.Changes[s.String()] = k
		}
	}
	if o.file != nil {
		g.out.Events.Unfiled = o.file.Unfiled()
	}
	if sp := o.spans.Load(); sp != nil {
		g.out.Spans, g.out.SpansDropped = sp.exported.Load(), sp.dropped.Load()
	}
	for _, ow := range n.jobs.all() {
		g.job(ow)
	}
	g.raylet()
	g.part("objectstore", func(ctx context.Context) error { _, err := n.storeFigures(ctx); return err }, func(s *metrics.Snapshot) {
		s.Store = n.lastStore()
	})
	g.wg.Wait()
	slices.SortFunc(g.out.Jobs, func(a, b state.Job) int { return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID)) })
	slices.Sort(g.out.Silent)
	return g.out
}

// job adds an owner's part.
func (g *gather) job(ow *ownerActor) {
	var (
		counts owner.Counters
		gauges owner.Gauges
		actors map[string]int
		j      = state.Job{ID: ow.job.String(), Tasks: map[string]int{}}
	)
	for _, s := range g.n.clients.all() {
		if s.job == ow.job && s.role == wire.RoleDriver {
			j.PID = int(s.pid)
		}
	}
	g.part(ow.ref.Name(), func(ctx context.Context) error {
		return inOwner(ctx, ow, func(c *owner.Core) {
			tasks := map[string]int{}
			c.States(func(s task.State, k int) { tasks[s.String()] = k })
			as := map[string]int{}
			c.Actors(func(a owner.ActorView) bool {
				if !a.Foreign {
					as[a.State.String()]++
				}
				return true
			})
			counts, gauges, actors, j.Tasks = c.Counters(), c.Gauges(), as, tasks
		})
	}, func(s *metrics.Snapshot) {
		j.Submitted, j.Finished, j.Failed, j.Retried = counts.Submitted, counts.Finished, counts.Failed, counts.Retried
		j.Objects = gauges.Objects
		for k, v := range j.Tasks {
			s.Tasks[k] += v
		}
		for k, v := range actors {
			s.Actors[k] += v
		}
		s.InlineBytes += uint64(max(0, gauges.InlineBytes))
		s.Jobs = append(s.Jobs, j)
	})
}

// raylet adds the scheduler's and the pool's part.
func (g *gather) raylet() {
	var (
		total, free []wire.Resource
		leases      int
		workers     []pool.Info
	)
	g.part("scheduler", func(ctx context.Context) error {
		return g.n.inRaylet(ctx, func(c *raylet.Core) {
			total, free, leases = c.Usage()
			workers = c.Workers()
		})
	}, func(s *metrics.Snapshot) {
		s.Leases = leases
		for i, r := range total {
			s.Resources[r.Name] = state.Resource{Total: units(r), Free: units(free[i])}
		}
		for _, w := range workers {
			s.WorkersBy[w.Slot.String()]++
		}
		s.Workers = len(workers)
	})
}

// units is an amount as people write it.
func units(r wire.Resource) float64 {
	if r.Name == sched.Memory {
		return float64(r.Amount)
	}
	return float64(r.Amount) / 1000
}

func (n *Node) control() string {
	switch {
	case n.cfg.NoGCS:
		return "off"
	case n.gcs == nil:
		return "starting"
	}
	select {
	case <-n.gcs.ready:
		if n.gcs.err != nil {
			return n.gcs.err.Error()
		}
		return "up"
	default:
		return "starting"
	}
}

func (n *Node) lastStore() state.Store {
	n.obs.mu.Lock()
	defer n.obs.mu.Unlock()
	s := n.obs.store
	s.Age = time.Since(n.obs.storeAt).Nanoseconds()
	return s
}

// storeFigures gives the store's figures, not older than storeAge.
func (n *Node) storeFigures(ctx context.Context) (state.Store, error) {
	n.obs.mu.Lock()
	fresh := time.Since(n.obs.storeAt) < storeAge
	n.obs.mu.Unlock()
	if fresh {
		return n.lastStore(), nil
	}
	var st objectstore.Stats
	if err := n.inStore(ctx, func(c *objectstore.Core) { st = c.Stats() }); err != nil {
		return state.Store{}, err
	}
	s := state.Store{
		Limit: st.Limit, Held: st.Held, Backed: st.Backed, Sealed: st.Sealed, Writing: st.Granted, Pinned: st.Pinned, Args: st.Args,
		Spilled: st.Spilled, Fallback: st.FallbackBytes, Objects: st.Objects, InMemory: st.ObjectsInMemory, OnlySpilled: st.ObjectsSpilled,
		Waiting: st.WaitingCreates, WaitingArgs: st.WaitingArgs, Restoring: st.WaitingRestores + st.RestoresUnderWay,
		SpilledEver: st.SpilledBytes, RestoredEver: st.RestoredBytes, SpillErrors: st.SpillErrors, Lost: st.Counters.Lost,
	}
	for _, t := range n.spiller.Stats().Targets {
		row := state.Target{URL: t.URL, Health: t.Health.String(), Bytes: t.Assigned}
		if t.Why != nil {
			row.Error = t.Why.Error()
		}
		s.SpillTargets = append(s.SpillTargets, row)
	}
	n.obs.mu.Lock()
	n.obs.store, n.obs.storeAt = s, time.Now()
	n.obs.mu.Unlock()
	return n.lastStore(), nil
}

// components is the supervision tree.
func (n *Node) components() []state.Component {
	tree := n.sys.Tree()
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

// rss is a process' resident memory in bytes, 0 where that cannot be read.
func rss(pid int) uint64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
