package world

import (
	"fmt"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/dealing"
	"mobula/internal/node/jobs"
	"mobula/objectstore"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/remote"
	"mobula/remote/transfer"
	"mobula/wire"
)

// links is what a node says to the others and hears of them, as internal/node has it.
type links struct {
	n        *Node
	encoders map[ids.Home]*internode.Encoder
	decoders map[ids.Home]*internode.Decoder
	agents   map[ids.JobID]uint64     // of the jobs of other nodes that are open here: the number of their opening
	openings uint64                   // the last number
	opened   map[ids.JobID][]ids.Home // where jobs of this node are open
	dealings *dealing.Table           // of this node's jobs with those of others
	lives    map[ids.Home]uint64      // which life of a node messages are for; none: whichever there is
	heard    map[ids.Home]uint64      // the last life of a node that this one was connected with
}

func newLinks(n *Node) *links {
	return &links{n: n, encoders: make(map[ids.Home]*internode.Encoder), decoders: make(map[ids.Home]*internode.Decoder), agents: make(map[ids.JobID]uint64), opened: make(map[ids.JobID][]ids.Home), dealings: dealing.New(), lives: make(map[ids.Home]uint64), heard: make(map[ids.Home]uint64)}
}

// alone tells whether the node is of no cluster.
func (n *Node) alone() bool { return len(n.w.nodes) == 1 }

// others are the nodes that this one talks with, in order.
func (l *links) others() []ids.Home { return slices.Sorted(maps.Keys(l.encoders)) }

// hosts tells whether a job of another node is open here.
func (l *links) hosts(job ids.JobID) bool { return l.agents[job] > 0 }

// hosted are the jobs of other nodes that are open here, in order.
func (l *links) hosted() []ids.JobID { return slices.Sorted(maps.Keys(l.agents)) }

// say sends a message to another node. To one that is dead nothing is said: whoever says it has not heard that yet.
func (l *links) say(node ids.Home, m internode.Msg) {
	if !l.n.believes(l.n.w.node(node)) {
		return
	}
	payload, err := l.encoder(node).Append(nil, m)
	if err != nil {
		l.n.w.fail("a message to node %v cannot be encoded: %v", node, err)
	}
	l.n.peer(node).post(remote.Send{Payload: payload, To: l.lives[node]})
}

func (l *links) encoder(node ids.Home) *internode.Encoder {
	e := l.encoders[node]
	if e == nil {
		e = &internode.Encoder{Agreed: internode.Version}
		l.encoders[node] = e
	}
	return e
}

// openAt makes a job of this node known to another one, closeAt ends it there. One that has ended meanwhile stays unknown there.
func (l *links) openAt(node ids.Home, job ids.JobID) {
	if l.n.owners[job] == nil {
		return
	}
	if !slices.Contains(l.opened[job], node) {
		l.opened[job] = append(l.opened[job], node)
	}
	l.say(node, &internode.OpenJob{Job: job, Namespace: "world"})
}

func (l *links) closeAt(node ids.Home, job ids.JobID) {
	l.forget(node, job)
	l.say(node, &internode.CloseJob{Job: job})
}

// ended ends a job that is over on all other nodes, also where who chooses nodes does not know any more that it is open.
func (l *links) ended(job ids.JobID) {
	l.n.chooser.box.put(cluster.JobEnded{Job: job})
	for _, node := range slices.Clone(l.opened[job]) {
		l.closeAt(node, job)
	}
}

// forget notes that a job is not open on a node any more.
func (l *links) forget(node ids.Home, job ids.JobID) {
	if l.opened[job] = slices.DeleteFunc(l.opened[job], func(at ids.Home) bool { return at == node }); len(l.opened[job]) == 0 {
		delete(l.opened, job)
	}
}

// handle takes what another node has sent, and the news of it.
func (l *links) handle(node ids.Home, ev any) {
	switch ev := ev.(type) {
	case delivered:
		l.deliver(node, ev.payload)
	case remote.Up:
		if l.lives[node] == 0 {
			l.lives[node] = ev.Peer.Epoch
		}
		l.heard[node] = max(l.heard[node], ev.Peer.Epoch)
		l.encoder(node) // it is one that this node talks with
		l.n.chooser.box.put(cluster.NodeUp{Node: node})
	case remote.Restarted:
		l.lost(node, errs.New(errs.CodeWorkerCrashed, "node %v was started again", node))
		l.peersRejoined(node)
	case remote.Gone:
		l.lost(node, errs.New(errs.CodeWorkerCrashed, "node %v is dead", node))
		l.peersGone(node)
	case remote.Refused:
		l.n.w.fail("a message to node %v is given back: %v", node, ev.Err)
	}
}

func (l *links) deliver(node ids.Home, payload []byte) {
	d := l.decoders[node]
	if d == nil {
		d = &internode.Decoder{Agreed: internode.Version}
		l.decoders[node] = d
	}
	life := l.n.life
	err := d.Decode(payload, func(m internode.Msg) error {
		if err := internode.Check(m, node, l.n.home); err != nil {
			return err
		}
		if l.n.life == life {
			l.take(node, m)
		}
		return nil
	})
	if err != nil {
		l.n.w.fail("a message of node %v is refused: %v", node, err)
	}
}

// take takes one message of another node.
func (l *links) take(node ids.Home, m internode.Msg) {
	n := l.n
	switch m := m.(type) {
	case *internode.OpenJob:
		l.open(m.Job)
	case *internode.CloseJob:
		l.close(node, m.Job)
	case *internode.ToClients:
		if l.hosts(m.Job) {
			l.toClients(m)
		}
	case *internode.ToSched:
		if l.hosts(m.Job) {
			n.raylet.box.put(raylet.OfJob{Job: m.Job, Event: m.Msg})
		}
	case *internode.ToStore:
		if l.hosts(m.Job) {
			n.store.box.put(m.Msg)
		}
	case *internode.ClientJoined:
		s := &session{n: n, id: m.Client, role: m.Role, job: m.Job, away: true}
		s.meet(m.Job)
		n.sessions[s.id] = s
		n.toOwner(m.Job, s.joined(m.Job))
	case *internode.ClientGone:
		n.sessions[m.Client].leave(m.Err)
		n.toOwner(m.Job, owner.ClientGone{Client: m.Client, Err: m.Err})
	case *internode.FromClients:
		for _, it := range m.Items {
			if s := n.sessions[it.Client]; s != nil && s.job == m.Job { // else it is gone
				n.route(s, it.Msgs)
			}
		}
	case *internode.FromSched:
		n.chooser.box.put(cluster.FromScheduler{Node: node, Job: m.Job, Msg: m.Msg})
	case *internode.FromStore:
		n.toOwner(m.Job, owner.FromStore{Node: node, Msg: m.Msg})
	case *internode.JobClosed:
		l.closed(node, m.Job)
	case *internode.PeerWords:
		for _, w := range m.Msgs {
			l.fromPeer(dealing.Pair{Own: m.To, Far: m.From}, owner.Words{Msg: w})
		}
	case *internode.ToPeer:
		l.fromPeer(dealing.Pair{Own: m.To, Far: m.From}, m.Msg)
	case *internode.Report:
		m.Node.ID = node
		n.chooser.audience.Heard(&m.Node)
		n.chooser.box.put(cluster.NodeReport{Node: m.Node})
	}
}

// open makes a job of another node known here.
func (l *links) open(job ids.JobID) {
	if !l.hosts(job) {
		l.openings++
		started := pool.JobStarted{Job: job, Opening: l.openings}
		l.agents[job] = started.Opening
		_ = l.n.jobs.askNow(func(a jobs.Ask) jobs.Event { return jobs.Hosted{Ask: a, JobStarted: started} })
	}
}

// close ends a job of another node here, as that has said.
func (l *links) close(node ids.Home, job ids.JobID) {
	if l.hosts(job) && job.Home() == node {
		l.drop(job)
	}
	l.say(node, &internode.JobClosed{Job: job})
}

// drop ends a job of another node here. Nothing more is said of it.
func (l *links) drop(job ids.JobID) {
	opening := l.agents[job]
	delete(l.agents, job)
	l.n.jobs.box.put(jobs.Over{Job: job, Away: true, Opening: opening})
}

// closed ends what a job of this node had on another one: its workers there are gone, and nothing more is said of them.
func (l *links) closed(node ids.Home, job ids.JobID) {
	n := l.n
	err := errs.New(errs.CodeDisconnected, "node %v has closed job %v", node, job)
	for _, id := range slices.Sorted(maps.Keys(n.sessions)) {
		if s := n.sessions[id]; id.Home() == node && s.job == job {
			s.leave(err)
			n.toOwner(job, owner.ClientGone{Client: id, Err: err})
		}
	}
	n.chooser.box.put(cluster.JobClosed{Node: node, Job: job})
}

func (l *links) toClients(m *internode.ToClients) {
	for _, it := range m.Items {
		if s := l.n.sessions[it.Client]; s != nil && s.job == m.Job {
			for _, msg := range readable(it.Msgs) {
				s.put(msg)
			}
		}
	}
}

// readable is messages that were passed on for a client: the world's clients read them where they are.
func readable(msgs []wire.Msg) (out []wire.Msg) {
	for _, m := range msgs {
		x, ok := m.(*wire.Encoded)
		if !ok {
			out = append(out, m)
			continue
		}
		all, err := x.Messages()
		if err != nil {
			panic(broken(fmt.Sprintf("a message for a client cannot be read: %v", err)))
		}
		out = append(out, all...)
	}
	return out
}

// lost ends everything that this node had with a life of another: its jobs here, and what jobs of this node had there.
func (l *links) lost(node ids.Home, err *errs.Error) {
	n := l.n
	delete(l.encoders, node)
	delete(l.lives, node)
	for _, job := range slices.Sorted(maps.Keys(l.opened)) {
		l.forget(node, job)
	}
	for _, job := range l.hosted() {
		if job.Home() == node {
			l.drop(job)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(n.sessions)) {
		if id.Home() == node {
			n.sessions[id].leave(err)
		}
	}
	n.store.box.put(objectstore.NodeGone{Node: node})
	n.transfer.box.put(transfer.Gone{Node: node})
	for _, job := range slices.Sorted(maps.Keys(n.owners)) {
		n.toOwner(job, owner.NodeGone{Node: node, Err: err})
	}
	n.chooser.audience.Gone(node)
	n.chooser.box.put(cluster.NodeGone{Node: node})
}

// abandon ends what a job of this node had on another one, which is most likely dead.
func (l *links) abandon(job ids.JobID, node ids.Home) {
	n := l.n
	n.w.model.abandonedNode(n.w.node(node), job)
	err := errs.New(errs.CodeWorkerCrashed, "node %v does not answer", node)
	for _, id := range slices.Sorted(maps.Keys(n.sessions)) {
		if s := n.sessions[id]; id.Home() == node && s.job == job {
			s.leave(err)
		}
	}
	n.chooser.box.put(cluster.JobAbandoned{Node: node, Job: job})
}

// agentPost passes on to a job's home what this node's store, scheduler and jobs tell the owner there.
func (l *links) agentPost(job ids.JobID, ev owner.Event) {
	var m internode.Msg
	switch ev := ev.(type) {
	case owner.FromSched:
		m = &internode.FromSched{Job: job, Msg: ev.Msg}
	case owner.FromStore:
		m = &internode.FromStore{Job: job, Msg: ev.Msg}
	case owner.ClientJoined:
		m = &internode.ClientJoined{Job: job, Client: ev.Client, Role: ev.Role}
	case owner.ClientGone:
		m = &internode.ClientGone{Job: job, Client: ev.Client, Err: ev.Err}
	default:
		return // of the directory, or an operator: they ask the job's home
	}
	l.say(job.Home(), m)
}

// agentSend passes on what a worker says.
func (l *links) agentSend(job ids.JobID, client ids.ClientID, msgs []wire.Msg) {
	l.say(job.Home(), &internode.FromClients{Job: job, Items: []internode.ClientMsgs{{Client: client, Msgs: msgs}}})
}
