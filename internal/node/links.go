package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/blobs"
	"mobula/internal/node/dealing"
	"mobula/internal/node/jobs"
	"mobula/internal/node/link"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/remote"
	"mobula/remote/clocks"
	remoteshell "mobula/remote/shell"
)

// alone tells whether the node is of no cluster.
func (l *links) alone() bool { return l.cfg.Cluster == nil }

// start lets other nodes talk with this one, which is ready for them.
func (l *links) start() (err error) {
	if l.alone() {
		l.far.early.end()
		return nil
	}
	c := l.cfg.Cluster
	// Another node may connect before Open returns: what it says waits for the hub.
	opened := make(chan struct{})
	defer close(opened)
	deliver := func(from remote.Life, payload []byte) {
		<-opened
		l.deliver(from, payload)
	}
	notice := func(node ids.Home, n remote.Notice) {
		<-opened
		l.notice(node, n)
	}
	l.hub, err = remoteshell.Open(l.sys, remoteshell.Config{
		Self: l.numbers.life(), Cluster: c.Name, Versions: remoteshell.Versions{Max: internode.Version, Min: internode.MinVersion}, Transport: c.Transport,
		Address: c.Address, Verify: c.Verify, Deliver: deliver, Notice: notice, Lender: l.lender, Brief: internode.OnlyReports, MaxMessage: internode.MaxPayload, Logger: l.cfg.Logger,
		Policy: actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	if err != nil {
		return err
	}
	l.far.early.end()
	l.work.Go(l.chooser.report)
	l.work.Go(l.compareClocks)
	return nil
}

// end closes the jobs of this node on the others, and the connections.
func (l *links) end(ctx context.Context) error {
	if l.hub == nil {
		return nil
	}
	for _, node := range l.others() {
		for _, o := range l.owners.all() {
			l.say(node, &internode.CloseJob{Job: o.job, Err: errs.New(errs.CodeShutdown, "node %s is stopping", l.cfg.Name)})
		}
	}
	return l.hub.Close(ctx)
}

// connected tells whether there is a connection with a life of another node.
func (l *links) connected(x remote.Life) bool {
	return l.hub != nil && slices.ContainsFunc(l.hub.Peers(), func(s remoteshell.Status) bool { return s.Life == x && s.Connected })
}

// box is what is said to another node.
func (l *links) box(node ids.Home) *link.Box {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.boxes[node]
	if b == nil {
		b = link.New(link.Config{Home: node, Sender: l.hub, Life: l.life, Agreed: func() uint32 { return l.hub.Agreed(node) }, Dropped: func(m internode.Msg, err error) {
			l.limited.warn("a message to another node could not be encoded", "node", node, "message", m.Kind(), "err", err)
		}})
		l.boxes[node] = b
		l.clockStep(clocks.Met{Node: node}, b.Push)
	}
	return b
}

// say sends a message to another node. To one that is dead nothing is said: whoever says it has not heard that yet.
func (l *links) say(node ids.Home, m internode.Msg) {
	if l.lives.dead(node) {
		return
	}
	b := l.box(node)
	b.Push(m)
	b.Flush()
}

// deliver takes the messages of a payload, in order. It waits where they go on to somebody who has no room.
func (l *links) deliver(from remote.Life, payload []byte) {
	l.mu.Lock()
	d := l.decoders[from.Home]
	if d == nil {
		d = new(internode.Decoder)
		l.decoders[from.Home] = d
	}
	l.mu.Unlock()
	d.Agreed = l.hub.Agreed(from.Home)
	refused := func(err error) {
		l.limited.warn("a message of another node was refused", "node", from.Home, "err", err)
	}
	if err := d.Decode(payload, func(m internode.Msg) error {
		if err := internode.Check(m, from.Home, l.numbers.Row().Home); err != nil {
			refused(err) // what follows it is none the worse
			return nil
		}
		l.inOurTime(from.Home, m)
		return l.take(from.Home, m)
	}); err != nil {
		refused(err)
	}
}

// take takes one message of another node, which may send it.
func (l *links) take(node ids.Home, m internode.Msg) error {
	switch m := m.(type) {
	case *internode.OpenJob:
		l.open(node, m)
	case *internode.CloseJob:
		l.close(node, m.Job)
	case *internode.ToClients:
		l.hosted(m.Job, func(*agent) { l.toClients(m) })
	case *internode.ToSched:
		l.hosted(m.Job, func(a *agent) { l.toSched(a, m) })
	case *internode.ToStore:
		l.hosted(m.Job, func(*agent) { l.store.deliver(m.Msg) })
	case *internode.ClientJoined:
		l.joined(m)
	case *internode.ClientGone:
		l.gone(m)
	case *internode.FromClients:
		return l.fromClients(m)
	case *internode.FromSched:
		l.chooser.deliver(cluster.FromScheduler{Node: node, Job: m.Job, Msg: m.Msg})
	case *internode.FromStore:
		l.owners.post(m.Job, owner.FromStore{Node: node, Msg: m.Msg})
	case *internode.JobClosed:
		l.closed(node, m.Job)
	case *internode.PeerWords:
		for _, w := range m.Msgs {
			l.far.told(dealing.Pair{Own: m.To, Far: m.From}, owner.Words{Msg: w})
		}
	case *internode.ToPeer:
		l.far.told(dealing.Pair{Own: m.To, Far: m.From}, m.Msg)
	case *internode.FindBlob, *internode.BlobFound, *internode.PullBlob, *internode.BlobChunk, *internode.OfferBlob, *internode.BlobTaken:
		l.blobs.take(node, m)
	case *internode.Report:
		m.Node.ID = node
		l.chooser.deliver(cluster.NodeReport{Node: m.Node})
		l.wired.reported(node, true)
	case *internode.WorkerOutput:
		l.workerOutput(node, m)
	case *internode.AskTime:
		l.timeAsked(node, m)
	case *internode.TellTime:
		l.timeTold(node, m)
	case *internode.Ask:
		l.questions.take(node, m)
	case *internode.Answer:
		l.questions.answered(node, m)
	default:
		return errs.New(errs.CodeProtocol, "%v has no place on a node", m.Kind())
	}
	return nil
}

// hosted has a message about a job of another node carried out. One about a job that was closed meanwhile is dropped.
func (l *links) hosted(job ids.JobID, do func(*agent)) {
	if a := l.agent(job); a != nil {
		do(a)
	}
}

// notice takes the news of another node.
func (l *links) notice(node ids.Home, n remote.Notice) {
	l.wired.met(n)
	switch n := n.(type) {
	case remote.Up:
		l.lives.heard(n.Peer)
		l.box(node).Meet(n.Peer.Epoch)
		l.far.met(node)
		l.chooser.deliver(cluster.NodeUp{Node: node})
		l.chooser.wake()
	case remote.Restarted:
		l.lost(node, errs.New(errs.CodeWorkerCrashed, "node %s was started again", l.nameOf(node)))
		l.far.rejoined(node)
	case remote.Gone:
		l.lives.end(n.Was)
		l.lost(node, errs.New(errs.CodeWorkerCrashed, "node %s is dead", l.nameOf(node)))
		l.far.gone(node, l.far.homeDead(node))
	case remote.Refused:
		l.cfg.Logger.Warn("a message to another node was given back", "node", node, "err", n.Err)
	}
}

// lost ends everything that this node had with a life of another: its jobs here, and what jobs of this node had there.
func (l *links) lost(node ids.Home, err *errs.Error) {
	l.mu.Lock()
	delete(l.boxes, node)
	l.clockStep(clocks.Gone{Node: node}, nil)
	var theirs []ids.JobID
	for job := range l.agents {
		if job.Home() == node {
			theirs = append(theirs, job)
		}
	}
	l.mu.Unlock()
	l.nowhereOpen(node)
	for _, job := range slices.Sorted(slices.Values(theirs)) {
		l.drop(job)
	}
	for _, s := range l.sessions.all() {
		if s.id.Home() == node {
			l.endSession(s, err)
		}
	}
	l.store.deliver(objectstore.NodeGone{Node: node})
	l.store.objects.Gone(node)
	l.blobs.deliver(blobs.NodeGone{Node: node})
	l.questions.gone(node, err)
	for _, o := range l.owners.all() { // before they hear that their leases there are over: what ran there is not to blame
		o.ref.Deliver(owner.NodeGone{Node: node, Err: err})
	}
	l.wired.reported(node, false)
	l.chooser.deliver(cluster.NodeGone{Node: node})
	l.chooser.greet(node)
}

// doubt has the jobs of this node give up what they have on a node that is most likely dead, where that may run twice.
func (l *links) doubt(node ids.Home, err *errs.Error) {
	for _, o := range l.owners.all() {
		o.ref.Deliver(owner.NodeDoubted{Node: node, Err: err})
	}
}

// abandon ends what a job of this node had on another one, which does not answer.
func (l *links) abandon(job ids.JobID, node ids.Home) {
	err := errs.New(errs.CodeWorkerCrashed, "node %s does not answer", l.nameOf(node))
	for _, s := range l.workersOf(job, node) {
		l.endSession(s, err)
	}
	l.chooser.deliver(cluster.JobAbandoned{Node: node, Job: job})
}

// workersOf are the workers of a job of this node on another one.
func (l *links) workersOf(job ids.JobID, node ids.Home) []*session {
	return slices.DeleteFunc(l.sessions.all(), func(s *session) bool { return s.id.Home() != node || s.job != job })
}

// agent stands in the place of the owner of another node's job; nil: the job is not open here.
func (l *links) agent(job ids.JobID) *agent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agents[job]
}

// hostedJobs are the jobs of other nodes that are open here, in order.
func (l *links) hostedJobs() []ids.JobID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.agents))
}

// close ends a job of another node here, as that has said.
func (l *links) close(node ids.Home, job ids.JobID) {
	if job.Home() == node {
		l.drop(job)
	}
	l.say(node, &internode.JobClosed{Job: job})
	l.chooser.greet(node) // which may have closed it since it heard nothing of this node
}

// drop ends a job of another node here. Nothing more is said of it.
func (l *links) drop(job ids.JobID) {
	l.mu.Lock()
	a := l.agents[job]
	delete(l.agents, job)
	l.mu.Unlock()
	if a != nil {
		a.end()
		l.clearing.begin(job)
		a.mu.Lock() // whoever makes the job known here has done so, or never does
		l.jobs.ref.Deliver(jobs.Over{Job: job, Away: true, Opening: a.opening})
		for _, e := range a.early {
			if e.exe != nil {
				_ = e.exe.Close() // it is not run
			}
		}
		a.early = nil
		a.mu.Unlock()
		l.blobs.over(job)
	}
}

// others are the nodes that this one talks with, in order.
func (l *links) others() []ids.Home {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.boxes))
}
