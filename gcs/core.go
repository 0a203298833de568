package gcs

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/remote"
	"mobula/remote/membership"
)

// Event is an input of Core.Step.
type Event interface{ gcsEvent() }

// Request asks for one operation; exactly one Reply with its ID answers it. To repeat a request is harmless.
type Request struct {
	ID uint64
	Op Op
}

// Op is the operation of a request.
type Op interface{ op() }

// Put writes a record, whatever the row had.
type Put struct{ Record Record }

// Remove deletes a row.
type Remove struct {
	Bucket Bucket
	Key    string
}

// Claim takes an actor's name. If it is taken by another actor the reply is ErrNameTaken
// with the holder's record; claimed by the same actor before, it is granted again.
type Claim struct{ Actor ActorRecord }

// Update replaces the record of a named actor whose claim this actor holds; a claim that
// has passed to another is ErrNameTaken, one that is gone ErrNotFound.
type Update struct{ Actor ActorRecord }

// Begin begins a new epoch of a home, by the rules of package register. The reply has the home's record.
type Begin struct {
	Claim register.Claim
	Node  string // the node that answers for the home
}

// Free gives a name up, if this actor holds it.
type Free struct {
	Namespace, Name string
	Actor           string
}

// Fence ends a home's lives up to this one, for good. The reply has the home's record.
type Fence struct{ Life remote.Life }

// Lookup reads one row from the server, not from the view.
type Lookup struct {
	Bucket Bucket
	Key    string
}

// List reads a table from the view, ordered by key. Nodes come with the time since their last heartbeat.
type List struct{ Bucket Bucket }

// Answered is the server's answer to an effect.
type Answered struct {
	ID       uint64
	Wrote    bool   // it answers a Write or a Delete; else a Read
	Record   Record // of a read
	Revision uint64 // present revision of the row; 0: no row
	Conflict bool   // a compare-and-set found another revision
	Err      error
}

// Changed is a watched change; Record is nil where the row was deleted.
type Changed struct {
	Bucket   Bucket
	Key      string
	Record   Record
	Revision uint64
}

// Announce puts the node in the table of nodes. With Every there is a heartbeat at that interval, by which other nodes see that this one lives: the row is written
// again, or, with Tells, the servers are told, who write the heartbeats of many together. With Judge it ends the lives of nodes that are silent for too long.
type Announce struct {
	Record NodeRecord
	Every  time.Duration
	Tells  bool
	Judge  *membership.JudgeConfig // nil: others judge
}

// Follows says which trust bundle the node follows, with all the keys that it names: its row has it with the next heartbeat.
type Follows struct{ Number uint64 }

// Accused says that a node does not hear another's life.
type Accused struct {
	By   ids.Home
	Life remote.Life
}

// Beat says that a heartbeat is due.
type Beat struct{}

func (Request) gcsEvent()  {}
func (Announce) gcsEvent() {}
func (Beat) gcsEvent()     {}
func (Answered) gcsEvent() {}
func (Changed) gcsEvent()  {}
func (Accused) gcsEvent()  {}
func (Follows) gcsEvent()  {}

func (Put) op()    {}
func (Remove) op() {}
func (Claim) op()  {}
func (Update) op() {}
func (Begin) op()  {}
func (Free) op()   {}
func (Fence) op()  {}
func (Lookup) op() {}
func (List) op()   {}

// Effect is an action of the shell: one call to the server, answered by Answered with the same ID, or a Reply.
type Effect interface{ gcsEffect() }

// Write puts a row. Revision: -1 whatever is there, 0 only if there is none, else only if
// the row has that revision.
type Write struct {
	ID       uint64
	Record   Record
	Revision int64
}

// Delete removes a row; Revision as in Write (-1 or a revision).
type Delete struct {
	ID       uint64
	Bucket   Bucket
	Key      string
	Revision int64
}

// Read reads a row.
type Read struct {
	ID     uint64
	Bucket Bucket
	Key    string
}

// Reply answers a request.
type Reply struct {
	ID      uint64
	Records []Record
	Err     error
}

// Heard says that a node lives: its row was written, or a heartbeat, whose number the row has then. A row may be shown again, with the same number.
type Heard struct{ Record NodeRecord }

// TellBeat has a server hear a heartbeat of this node. Nobody answers: the next one follows soon.
type TellBeat struct{ Heartbeat }

// Fenced says that the lives of a home up to this one are over. It may be said again.
type Fenced struct{ Life remote.Life }

// Bundled gives the cluster's trust bundle, whoever has written it. It may be given again.
type Bundled struct{ Bundle trust.SignedBundle }

// Left says that a node has ended in order.
type Left struct{ Life remote.Life }

// After returns an event after a time, in the place of one that is to come.
type After struct {
	D  time.Duration
	Ev Event
}

func (After) gcsEffect()    {}
func (Heard) gcsEffect()    {}
func (TellBeat) gcsEffect() {}
func (Fenced) gcsEffect()   {}
func (Left) gcsEffect()     {}
func (Bundled) gcsEffect()  {}
func (Write) gcsEffect()    {}
func (Delete) gcsEffect()   {}
func (Read) gcsEffect()     {}
func (Reply) gcsEffect()    {}

// Core is the control plane's logic: which calls to the server a request needs, and what their answers mean. It
// holds only the view, the requests under way, when each node was heard last, and the judge's opinion.
type Core struct {
	view    map[Bucket]map[string]Record
	pending map[uint64]*pending
	nodes   nodes
	lives   lives
	now     int64
	out     []Effect
}

// pending is a request under way. A name's request reads the row, then writes it with
// the revision read, and reads again after a conflict.
type pending struct {
	op      Op
	writing bool       // waits for the answer of a Write or a Delete, else of a Read
	failed  error      // the answer of a claim that is being given up
	home    HomeRecord // the row that a Begin tries to write
	unclear bool       // a write of a Begin failed, but may have been made
}

// NewCore makes an empty core; watches fill its view.
func NewCore() *Core {
	c := &Core{view: make(map[Bucket]map[string]Record), pending: make(map[uint64]*pending), nodes: nodes{heard: make(map[string]int64)},
		lives: lives{fenced: make(map[ids.Home]uint64), past: make(map[ids.Home]pastLife)}}
	for _, b := range Buckets {
		c.view[b] = make(map[string]Record)
	}
	return c
}

// Step handles one event. The slice is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	c.now, c.out = now, c.out[:0]
	switch ev := ev.(type) {
	case Request:
		c.request(ev)
	case Answered:
		c.answered(ev)
	case Changed:
		c.changed(ev)
	case Announce:
		c.announce(ev)
	case Beat:
		c.beatDue()
	case Accused:
		c.accused(ev)
	case Follows:
		c.follows(ev.Number)
	}
	return c.out
}

func (c *Core) changed(ev Changed) {
	switch ev.Bucket {
	case Nodes:
		c.heardOf(ev)
		c.livesOn(ev)
	case Homes:
		c.verdict(ev)
	case Bundles:
		if r, ok := ev.Record.(BundleRecord); ok {
			c.emit(Bundled{r.SignedBundle})
		}
		return
	case Beats:
		if r, ok := ev.Record.(BeatsRecord); ok {
			c.beatsOf(r)
		}
		return
	}
	if ev.Record == nil {
		delete(c.view[ev.Bucket], ev.Key)
	} else if ev.Key == ev.Record.Key() { // else a release before 0.5 wrote it, with other keys
		c.view[ev.Bucket][ev.Key] = ev.Record
	}
}

func (c *Core) request(r Request) {
	if op, ok := r.Op.(List); ok {
		rows := c.view[op.Bucket]
		out := make([]Record, 0, len(rows))
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			out = append(out, c.shown(key, rows[key]))
		}
		c.emit(Reply{ID: r.ID, Records: out})
		return
	}
	p := &pending{op: r.Op}
	c.pending[r.ID] = p
	switch op := r.Op.(type) {
	case Put:
		p.writing = true
		c.emit(Write{ID: r.ID, Record: op.Record, Revision: -1})
	case Remove:
		p.writing = true
		c.emit(Delete{ID: r.ID, Bucket: op.Bucket, Key: op.Key, Revision: -1})
	case Lookup:
		c.emit(Read{ID: r.ID, Bucket: op.Bucket, Key: op.Key})
	case Claim:
		// Most names are free: try first, read after a conflict.
		p.writing = true
		c.emit(Write{ID: r.ID, Record: op.Actor, Revision: 0})
	case Update:
		c.emit(Read{ID: r.ID, Bucket: Actors, Key: op.Actor.Key()})
	case Begin:
		c.beginLife(r.ID, p, op)
	case Free:
		c.emit(Read{ID: r.ID, Bucket: Actors, Key: ActorKey(op.Namespace, op.Name)})
	case Fence:
		c.emit(Read{ID: r.ID, Bucket: Homes, Key: op.Life.Home.String()})
	case Forget:
		c.emit(Read{ID: r.ID, Bucket: Nodes, Key: op.Life.Home.String()})
	case ForgetHome:
		c.emit(Read{ID: r.ID, Bucket: Homes, Key: op.Life.Home.String()})
	}
}

func (c *Core) answered(a Answered) {
	p := c.pending[a.ID]
	if a.ID == beatID {
		c.beaten(a)
		return
	}
	if p == nil || a.Wrote != p.writing {
		return // it answers a call of the core before a restart; the request was stepped again
	}
	if op, ok := p.op.(Claim); ok && a.Err != nil && p.writing { // it may have been written, and then nobody would free it
		p.op, p.writing, p.failed = Free{op.Actor.Namespace, op.Actor.Name, op.Actor.Actor}, false, a.Err
		c.emit(Read{ID: a.ID, Bucket: Actors, Key: op.Actor.Key()})
		return
	}
	if _, ok := p.op.(Begin); ok && a.Err != nil && p.writing && !p.unclear { // likewise: the row says whether it was; the write is tried once more
		p.writing, p.unclear = false, true
		c.emit(Read{ID: a.ID, Bucket: Homes, Key: p.home.Key()})
		return
	}
	if a.Err != nil {
		c.finish(Reply{ID: a.ID, Err: a.Err})
		return
	}
	switch op := p.op.(type) {
	case Put, Remove:
		c.finish(Reply{ID: a.ID})
	case Lookup:
		if a.Record == nil {
			c.finish(Reply{ID: a.ID, Err: errs.New(errs.CodeNotFound, "%s has no row %q", op.Bucket, op.Key)})
			return
		}
		c.finish(Reply{ID: a.ID, Records: []Record{a.Record}})
	case Claim:
		c.claim(a, p, op)
	case Update:
		c.update(a, p, op)
	case Begin:
		c.begun(a, p, op)
	case Free:
		c.free(a, p, op)
	case Fence:
		c.fence(a, p, op)
	case Forget:
		c.forget(a, p, op)
	case ForgetHome:
		c.forgetHome(a, p, op)
	}
}

func (c *Core) claim(a Answered, p *pending, op Claim) {
	switch {
	case p.writing && !a.Conflict:
		c.finish(Reply{ID: a.ID, Records: []Record{op.Actor}})
	case p.writing: // somebody has the name: read who
		p.writing = false
		c.emit(Read{ID: a.ID, Bucket: Actors, Key: op.Actor.Key()})
	case a.Record == nil: // it was given up meanwhile
		p.writing = true
		c.emit(Write{ID: a.ID, Record: op.Actor, Revision: 0})
	case a.Record.(ActorRecord).Actor == op.Actor.Actor:
		c.finish(Reply{ID: a.ID, Records: []Record{a.Record}})
	default:
		held := a.Record.(ActorRecord)
		c.finish(Reply{ID: a.ID, Records: []Record{held}, Err: errs.New(errs.CodeNameTaken,
			"%q in namespace %q is held by actor %s (%s); choose another name, or ask for GetIfExists", held.Name, held.Namespace, held.Actor, held.Type)})
	}
}

func (c *Core) update(a Answered, p *pending, op Update) {
	switch {
	case p.writing && !a.Conflict:
		c.finish(Reply{ID: a.ID, Records: []Record{op.Actor}})
	case p.writing:
		p.writing = false
		c.emit(Read{ID: a.ID, Bucket: Actors, Key: op.Actor.Key()})
	case a.Record == nil:
		c.finish(Reply{ID: a.ID, Err: errs.New(errs.CodeNotFound, "actor name %q in namespace %q was given up", op.Actor.Name, op.Actor.Namespace)})
	case a.Record.(ActorRecord).Actor != op.Actor.Actor:
		held := a.Record.(ActorRecord)
		c.finish(Reply{ID: a.ID, Records: []Record{held}, Err: errs.New(errs.CodeNameTaken, "%q in namespace %q passed to actor %s", held.Name, held.Namespace, held.Actor)})
	default:
		p.writing = true
		c.emit(Write{ID: a.ID, Record: op.Actor, Revision: int64(a.Revision)})
	}
}

func (c *Core) free(a Answered, p *pending, op Free) {
	switch {
	case p.writing && !a.Conflict:
		c.finish(Reply{ID: a.ID})
	case p.writing:
		p.writing = false
		c.emit(Read{ID: a.ID, Bucket: Actors, Key: ActorKey(op.Namespace, op.Name)})
	case a.Record == nil || a.Record.(ActorRecord).Actor != op.Actor:
		c.finish(Reply{ID: a.ID}) // not ours, or gone already: in both cases we do not hold it
	default:
		p.writing = true
		c.emit(Delete{ID: a.ID, Bucket: Actors, Key: ActorKey(op.Namespace, op.Name), Revision: int64(a.Revision)})
	}
}

func (c *Core) finish(r Reply) {
	if p := c.pending[r.ID]; p.failed != nil {
		r.Err = p.failed
	}
	delete(c.pending, r.ID)
	c.emit(r)
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }
