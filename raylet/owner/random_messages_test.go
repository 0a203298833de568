package owner

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Whatever clients, store and scheduler send, in whatever order, the core does not panic and
// its counts stay right.
func TestAnyMessagesInAnyOrder(t *testing.T) { anyMessages(t, false) }

// The same where calls of actors go straight.
func TestAnyMessagesOfStraightCalls(t *testing.T) { anyMessages(t, true) }

func anyMessages(t *testing.T, straight bool) {
	testkit.Check(t, func(rt *rapid.T) {
		c := New(Config{Job: 1, InlineBudget: 4 << 10, StraightCalls: straight})
		h := &hostile{rt: rt, straight: straight, logs: make(map[uint64][]byte), root: ids.RootTask(1, 1), opts: []*wire.TaskOptions{
			{Func: "one", NumReturns: 1, MaxRetries: 1},
			{Func: "three", NumReturns: 3, MaxRetries: -1, RetryExceptions: true, ExceptionRetries: 2},
			{Func: "none", NumReturns: 0, MaxRetries: 0},
			{Func: "stream", NumReturns: wire.Streaming, MaxRetries: 1, Backpressure: 1},
			{Func: "actor", NumReturns: 1, MaxRestarts: 1, MaxTaskRetries: 1},
			{Func: "named", NumReturns: 1, ActorName: "n", GetIfExists: true, Detached: true},
		}}
		for i := range ids.ClientID(3) {
			role := wire.RoleWorker
			if i == 0 {
				role = wire.RoleDriver
			}
			c.Step(1, ClientJoined{Client: i + 1, Role: role, Straight: straight && i < 2})
		}
		now := int64(1)
		for range rapid.IntRange(1, 120).Draw(rt, "events") {
			now += rapid.Int64Range(1, 1e9).Draw(rt, "passes")
			if h.n(20, "rebuild") == 0 {
				c = h.rebuild()
			}
			ev := h.event()
			h.step(c, now, ev)
			if err := c.Validate(); err != nil {
				for _, t := range c.tasks.all() {
					rt.Logf("left: task %v %s %v flags %b live %d spec %v", t.id(), t.name(), t.state, t.flags, t.live, t.spec != nil)
				}
				rt.Fatalf("after %T %+v: %v", ev, ev, err)
			}
		}
	})
}

type hostile struct {
	rt       *rapid.T
	straight bool
	root     ids.TaskID
	opts     []*wire.TaskOptions
	leases   ids.LeaseID
	keys     []sched.ClassKey
	tokens   []uint64
	epoch    uint64
	logs     map[uint64][]byte
	cookie   uint64
}

// step gives the core an event and keeps what it logs.
func (h *hostile) step(c *Core, now int64, ev Event) {
	for _, e := range c.Step(now, ev) {
		h.see(&e)
		if e.Kind != Log {
			continue
		}
		for _, r := range *e.Records {
			h.cookie++
			h.logs[h.cookie] = append([]byte(nil), r.Bytes...)
			if old := r.Appended(h.cookie); old != 0 && h.n(2, "replaced") == 0 {
				delete(h.logs, old)
			}
		}
	}
}

// rebuild makes a new core from the log; its clients hold and run what they like.
func (h *hostile) rebuild() *Core {
	c, err := Rebuild(Config{Job: 1, InlineBudget: 4 << 10, StraightCalls: h.straight}, maps.All(h.logs))
	if err != nil {
		h.rt.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		h.rt.Fatalf("after a rebuild: %v", err)
	}
	h.epoch++
	restored := Restored{Epoch: h.epoch}
	for i := range ids.ClientID(3) {
		role := wire.RoleWorker
		if i == 0 {
			role = wire.RoleDriver
		}
		restored.Clients = append(restored.Clients, ClientJoined{Client: i + 1, Role: role, Straight: h.straight && i < 2})
	}
	events := []Event{restored}
	for i := range ids.ClientID(3) {
		hold := &wire.Holdings{Component: wire.ComponentOwner, Epoch: h.epoch}
		for range h.n(4, "handles") {
			hold.Handles = append(hold.Handles, h.object())
		}
		for range h.n(3, "running") {
			hold.Tasks = append(hold.Tasks, wire.Attempt{Task: h.task(), Attempt: h.attempt(), Lease: h.lease()})
		}
		for range h.n(2, "actors") {
			hold.Actors = append(hold.Actors, ids.ActorID(h.task()))
		}
		for range h.n(2, "streams") {
			hold.Streams = append(hold.Streams, wire.StreamNext{Task: h.task(), Index: uint32(h.n(3, "index"))})
		}
		for range h.n(2, "gets") {
			hold.Gets = append(hold.Gets, wire.Get{ID: h.object(), Fetch: true})
		}
		events = append(events, FromClient{i + 1, []wire.Msg{h.msg(), hold, h.msg()}})
	}
	for _, ev := range events {
		h.step(c, 1, ev)
		if err := c.Validate(); err != nil {
			h.rt.Fatalf("recovering, after %T: %v", ev, err)
		}
	}
	return c
}

func (h *hostile) n(below int, what string) int { return rapid.IntRange(0, below-1).Draw(h.rt, what) }

func (h *hostile) see(e *Effect) {
	switch m := e.msg.(type) {
	case sched.Want:
		h.keys = append(h.keys, m.Key)
	}
	if e.Kind == Fetch {
		h.tokens = append(h.tokens, e.Token)
	}
}

func (h *hostile) task() ids.TaskID {
	t := ids.Derive(h.root, uint64(h.n(6, "task")))
	if h.n(4, "promised") == 0 {
		t = ids.Derive(t, uint64(h.n(2, "promise")))
	}
	return t
}

func (h *hostile) object() ids.ObjectID {
	if h.n(4, "put") == 0 {
		return h.root.Put(uint32(h.n(3, "put")))
	}
	return h.task().Return(h.n(4, "return"))
}

func (h *hostile) value() wire.Value {
	v := wire.Value{Data: make([]byte, h.n(3, "size")*1000)}
	if h.n(3, "refs") == 0 {
		v.Refs = []ids.ObjectID{h.object()}
	}
	return v
}

func (h *hostile) err() *errs.Error {
	codes := []errs.Code{errs.CodeTaskFailed, errs.CodeCancelled, errs.CodeOutOfMemory, errs.CodeWorkerCrashed}
	return errs.New(codes[h.n(len(codes), "code")], "it failed")
}

func (h *hostile) result() wire.Result {
	switch h.n(3, "result") {
	case 0:
		return wire.Result{Kind: wire.ResultInline, Value: h.value()}
	case 1:
		return wire.Result{Kind: wire.ResultStored, Size: 9}
	}
	if h.n(2, "reason") == 0 {
		return wire.Result{Kind: wire.ResultError}
	}
	return wire.Result{Kind: wire.ResultError, Err: h.err()}
}

func (h *hostile) attempt() uint32    { return uint32(h.n(3, "attempt")) }
func (h *hostile) lease() ids.LeaseID { return ids.LeaseID(h.n(int(h.leases)+1, "lease")) }

func (h *hostile) spec() *wire.TaskSpec {
	s := &wire.TaskSpec{ID: h.task(), Parent: h.root, Opts: h.opts[h.n(4, "opts")]}
	switch h.n(5, "kind") {
	case 0:
		s.Kind, s.Opts, s.Actor = wire.TaskActorCreate, h.opts[4+h.n(2, "actor")], ids.ActorID(s.ID)
	case 1, 2:
		s.Kind, s.Opts, s.Actor, s.Seq = wire.TaskActorCall, h.opts[0], ids.ActorID(h.task()), uint64(h.n(4, "seq"))
		if h.n(6, "foreign") == 0 {
			s.Actor = ids.ActorID(ids.RootTask(9, 9))
		}
	default:
		if h.n(4, "child") == 0 {
			s.Parent = h.task()
		}
	}
	if h.n(6, "deadline") == 0 {
		s.Deadline = int64(h.n(20, "deadline")) * 1e9
	}
	if h.n(3, "promises") == 0 {
		for n := range uint32(1 + h.n(2, "promises")) {
			s.Promises = append(s.Promises, n)
		}
	}
	for range h.n(3, "args") {
		if h.n(2, "ref") == 0 {
			v := h.value()
			if h.n(3, "large") == 0 {
				v.Data = make([]byte, packMin)
			}
			s.Args = append(s.Args, wire.Arg{Value: v})
		} else if id := h.object(); id.Task != s.ID { // a task cannot wait for itself: its name is not known before
			s.Args = append(s.Args, wire.Arg{Ref: id})
		}
	}
	return s
}

func (h *hostile) msg() wire.Msg {
	if h.straight && h.n(3, "talk") == 0 {
		return h.talk()
	}
	switch h.n(16, "message") {
	case 0, 1:
		return &wire.Submit{Spec: h.spec()}
	case 2:
		return &wire.PutValue{ID: h.object(), Value: h.value()}
	case 3:
		return &wire.Seal{ID: h.object(), Attempt: h.attempt(), Size: 8, Value: wire.Value{Refs: h.value().Refs}}
	case 4:
		return &wire.Get{ID: h.object(), Fetch: h.n(2, "fetch") == 0}
	case 5:
		return &wire.Release{IDs: []ids.ObjectID{h.object(), h.task().Stream()}}
	case 6:
		return &wire.AddRef{ID: h.object()}
	case 7:
		return &wire.Cancel{Task: h.task(), Force: h.n(2, "force") == 0, Recursive: h.n(2, "recursive") == 0, Insist: h.n(2, "insist") == 0}
	case 8:
		return &wire.KillActor{Actor: ids.ActorID(h.task()), Restart: h.n(2, "restart") == 0}
	case 9:
		return &wire.StreamNext{Task: h.task(), Index: uint32(h.n(4, "index"))}
	case 10:
		return &wire.StreamItem{Task: h.task(), Attempt: h.attempt(), Index: uint32(h.n(4, "index")), Result: h.result()}
	case 11:
		b := &wire.Blocked{Lease: h.lease(), Returned: []ids.TaskID{h.task()}}
		if h.n(3, "queue only") > 0 {
			b.Task = h.task()
		}
		return b
	case 12:
		return &wire.Unblocked{Task: h.task(), Lease: h.lease()}
	case 13:
		return &wire.Unget{ID: h.object()}
	}
	d := &wire.Done{Task: h.task(), Attempt: h.attempt(), Lease: h.lease(), Items: uint32(h.n(3, "items")), Times: wire.Times{Started: 1, Ended: 2}}
	if h.n(3, "fails") == 0 {
		d.Err = h.err()
	}
	for range h.n(4, "results") {
		d.Results = append(d.Results, h.result())
	}
	return d
}

func (h *hostile) event() Event {
	client := ids.ClientID(1 + h.n(3, "client"))
	switch h.n(14, "event") {
	case 0:
		return Timer{}
	case 1:
		if h.n(8, "gone") == 0 {
			return ClientGone{Client: client, Err: h.err()}
		}
		return ClientJoined{Client: client, Role: wire.RoleWorker, Straight: h.straight && client < 3}
	case 2, 3:
		return FromSched{Msg: h.sched()}
	case 4:
		return FromStore{Msg: h.store()}
	case 5:
		a := NameClaimed{Actor: ids.ActorID(h.task())}
		if h.n(2, "existing") == 0 {
			a.Existing = ids.ActorID(h.task())
		}
		return FromDirectory{Msg: a}
	case 6:
		f := Fetched{Err: h.err()}
		if len(h.tokens) > 0 {
			f.Token = h.tokens[0]
			h.tokens = h.tokens[1:]
		}
		return f
	}
	ev := FromClient{Client: client}
	for range 1 + h.n(4, "messages") {
		ev.Msgs = append(ev.Msgs, h.msg())
	}
	return ev
}

func (h *hostile) sched() sched.OwnerMsg {
	switch h.n(7, "sched") {
	case 0:
		return sched.Reclaim{Lease: h.lease()}
	case 1:
		return sched.Revoked{Lease: h.lease(), Err: h.err(), Peak: 1 << 20}
	case 2:
		return sched.Resumed{Lease: h.lease(), Ask: sched.Ask{Nth: uint64(h.n(4, "ask"))}}
	case 3:
		if len(h.keys) > 0 && h.n(4, "infeasible") == 0 {
			return sched.Infeasible{Key: h.keys[h.n(len(h.keys), "key")], Err: h.err()}
		}
		return sched.Resync{Epoch: 3}
	}
	if len(h.keys) == 0 {
		return sched.Resumed{}
	}
	h.leases++
	return sched.Granted{Key: h.keys[h.n(len(h.keys), "key")], Lease: h.leases, Worker: ids.ClientID(2 + h.n(2, "worker"))}
}

func (h *hostile) store() objectstore.OwnerMsg {
	switch h.n(6, "store") {
	case 0:
		return objectstore.Lost{ID: h.object(), Task: h.task(), Attempt: h.attempt(), Ask: uint64(h.n(4, "ask")), Client: ids.ClientID(h.n(4, "client"))}
	case 1:
		return objectstore.Packed{ID: h.object(), Size: 5}
	case 2:
		return objectstore.Inventory{Job: 1, Objects: []objectstore.SealedInfo{{ID: h.object(), Attempt: h.attempt()}}}
	case 3:
		return objectstore.ArgsWait{Task: h.task(), Attempt: h.attempt(), Ask: uint64(h.n(4, "ask"))}
	case 4:
		return objectstore.ArgsRefused{Task: h.task(), Attempt: h.attempt(), Ask: uint64(h.n(4, "ask")), Err: h.err()}
	}
	p := objectstore.ArgsPinned{Task: h.task(), Attempt: h.attempt(), Ask: uint64(h.n(4, "ask"))}
	for range h.n(3, "pinned") {
		p.Values = append(p.Values, objectstore.PinnedValue{ID: h.object()})
	}
	return p
}

func (h *hostile) String() string { return fmt.Sprintf("%d leases", h.leases) }
