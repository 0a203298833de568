package node

import (
	"context"
	"os"
	"slices"

	"mobula/gcs"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/internal/release"
	"mobula/internal/state"
	"mobula/telemetry/metrics"
	"mobula/wire"
)

// inspected is the node as package inspect reads it.
type inspected struct{ n *Node }

func (n *Node) newInspector() *inspect.Inspector {
	return inspect.New(inspect.Config{Name: n.cfg.Name, Dir: n.dir, Namespace: n.cfg.Namespace, Clock: n.clock, Log: n.cfg.Logger}, inspected{n})
}

func (v inspected) Parts() inspect.Parts {
	n := v.n
	return inspect.Parts{
		System: n.sys, Raylet: n.raylet.ref, Cluster: n.chooser.ref, Directory: n.directory.ref, Store: n.store.actor, Memory: n.store.shm, Asked: n.store.asked, Spiller: n.store.spiller, Procs: n.raylet.procs, Events: n.obs.Recorder(), Classes: n.obs.Set().Actors,
	}
}

func (v inspected) Outline(out *metrics.Snapshot) {
	n := v.n
	s := &out.Status
	s.Node, s.Address, s.PID, s.Version, s.Started, s.Now = n.cfg.Name, n.Address(), os.Getpid(), release.Build(), n.since, n.clock.Now()
	s.Dir, s.Metrics, s.Control, s.Restarts, s.Clients = n.dir, n.MetricsURL(), n.control.state(), n.sys.Restarts(), len(n.sessions.all())
	s.Labels = n.cfg.labels(n.numbers.Row().Home)
	if n.wired.on() && n.wired.member.In() {
		s.Cluster, s.Role, s.Reached = n.wired.member.Live().Name().Cluster, n.Role(), n.ClusterAddress()
		s.Copies = n.control.copies()
	}
	s.Graphs, s.Lost = n.graphs.running(), n.files.Lost()
	n.obs.Outline(out)
}

func (v inspected) Owners() []*inspect.Owner {
	all := v.n.owners.all()
	out := make([]*inspect.Owner, len(all))
	for i, o := range all {
		out[i] = o.shown
	}
	return out
}

func (v inspected) Owner(job ids.JobID) *inspect.Owner {
	if o := v.n.owners.get(job); o != nil {
		return o.shown
	}
	return nil
}

func (v inspected) Namespace(job ids.JobID) string { return v.n.programs.of(job).namespace }

func (v inspected) Clients() []*inspect.Client {
	all := v.n.sessions.all()
	out := make([]*inspect.Client, len(all))
	for i, s := range all {
		out[i] = s.shown()
	}
	return out
}

func (v inspected) Client(id ids.ClientID) *inspect.Client {
	if s := v.n.sessions.get(id); s != nil {
		return s.shown()
	}
	return nil
}

// shown is the client as inspection sees it.
func (s *session) shown() *inspect.Client {
	return &inspect.Client{ID: s.id, Role: s.role, Job: s.job, PID: s.pid, Local: s.IsLocal(), System: s.system}
}

func (v inspected) Report(id ids.ClientID) (said wire.Stats, ok bool) {
	return v.n.obs.Report(id)
}

func (v inspected) Graphs() []state.Graph { return v.n.graphs.running() }

func (v inspected) Listed() string {
	if v.n.links.alone() {
		return ""
	}
	return v.n.cfg.Name
}

func (v inspected) NameOf(node ids.Home) string { return v.n.links.nameOf(node) }

func (v inspected) Nameless() bool { return v.n.cfg.NoGCS }

func (v inspected) Named(ctx context.Context, namespace, name string) (ids.ActorID, error) {
	rec, err := v.n.control.named(ctx, state.ActorRequest{Namespace: namespace, Name: name})
	if err != nil {
		return ids.ActorID{}, err
	}
	return parseActor(rec.Actor)
}

func (v inspected) Nodes(ctx context.Context) (out inspect.Nodes, err error) {
	c, w := &v.n.control, &v.n.wired
	out.Self = c.self()
	if !c.elsewhere() && !w.on() {
		return out, nil
	}
	out.Others, err = c.nodes(ctx)
	away := c.away()
	out.Others = slices.DeleteFunc(out.Others, func(r gcs.NodeRecord) bool { // of itself it knows more than the table
		own := r.Home == out.Self.Home
		away = away || own && r.Unshown
		return own
	})
	if away {
		out.Away, out.Hears = c.carriers(out.Others), w.hears
	}
	return out, err
}
