package node

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore"
	"mobula/wire"
	"mobula/wire/conn"
)

// dialled is a driver that speaks the protocol by hand.
func dialled(t *testing.T, n *Node, role wire.Role) (*conn.Conn, *wire.Welcome) {
	t.Helper()
	c, w, f, err := conn.Dial(t.Context(), n.Address(), wire.Hello{Role: role, PID: int32(os.Getpid())}, conn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if f != nil {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	return c, w
}

// await reads messages until one passes.
func await(t *testing.T, c *conn.Conn, what string, is func(wire.Msg) bool) {
	t.Helper()
	timer := time.AfterFunc(testkit.Patience(), func() { _ = c.Close() })
	defer timer.Stop()
	for {
		batch, err := c.Recv()
		if slices.ContainsFunc(batch, is) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func refused(want error) func(wire.Msg) bool {
	return func(m wire.Msg) bool {
		b, ok := m.(*wire.Bye)
		return ok && errors.Is(b.Err, want)
	}
}

// A message that no client sends ends the connection with the reason.
func TestAMessageThatIsNobodysIsRefused(t *testing.T) {
	n, _ := running(t, Config{}, Telemetry{})
	for _, m := range []wire.Msg{
		&wire.Resolved{}, &wire.Created{}, &wire.UnmapFile{}, &wire.Exec{}, &wire.CancelTask{}, &wire.StopActor{}, &wire.Drain{},
		&wire.StreamAck{}, &wire.Resume{}, &wire.Reply{}, &wire.Resync{}, &wire.Credit{}, &wire.Collect{}, &wire.Unneeded{}, &wire.ActorNews{},
	} {
		c, _ := dialled(t, n, wire.RoleDriver)
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
		await(t, c, m.Kind().String(), refused(errs.ErrProtocol))
	}
	c, _ := dialled(t, n, wire.RoleTool)
	if err := c.Send(&wire.Get{}); err != nil {
		t.Fatal(err)
	}
	await(t, c, "of a tool", refused(errs.ErrProtocol))
}

// What belongs to a job of another home is refused with the reason, and never taken for dead.
func TestWhatBelongsToAnotherHomeIsRefused(t *testing.T) {
	n, _ := running(t, Config{}, Telemetry{})
	far := ids.Derive(ids.RootTask(ids.JobID(ids.Home(3).ID(7)), 1), 1)
	for _, m := range []wire.Msg{
		&wire.Done{Task: far}, &wire.StreamItem{Task: far}, &wire.Blocked{Task: far}, &wire.Unblocked{Task: far}, &wire.Seal{ID: far.Return(0)},
	} {
		c, _ := dialled(t, n, wire.RoleDriver)
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
		await(t, c, m.Kind().String(), refused(errs.ErrNotFound))
	}

	// What is about another home's objects and actors is the own owner's, which is refused in turn.
	c, w := dialled(t, n, wire.RoleDriver)
	object, box := far.Return(0), w.Root.Put(1)
	resolved := func(id ids.ObjectID, want error) func(wire.Msg) bool {
		return func(m wire.Msg) bool {
			r, ok := m.(*wire.Resolved)
			if !ok || r.ID != id {
				return false
			}
			if !errors.Is(r.Result.Err, want) {
				t.Errorf("%v is %+v, want %v", id, r.Result, want)
			}
			return true
		}
	}
	send := func(msgs ...wire.Msg) {
		t.Helper()
		if err := c.Send(msgs...); err != nil {
			t.Fatal(err)
		}
	}
	send(&wire.AddRef{ID: object}, &wire.Get{ID: object})
	await(t, c, "a get", resolved(object, errs.ErrNotFound))
	send(&wire.PutValue{ID: box, Value: wire.Value{Data: []byte("v"), Refs: []ids.ObjectID{far.Return(1)}}}, &wire.Get{ID: box})
	await(t, c, "a value with a reference", func(m wire.Msg) bool {
		r, ok := m.(*wire.Resolved)
		return ok && r.ID == box && string(r.Result.Value.Data) == "v"
	})
	send(&wire.WatchActor{Actor: ids.ActorID(far)})
	await(t, c, "a watch", func(m wire.Msg) bool {
		news, ok := m.(*wire.ActorNews)
		if ok && (news.State == wire.ActorDead || !errors.Is(news.Err, errs.ErrActorUnavailable)) {
			t.Errorf("who watches is told %+v", news)
		}
		return ok
	})
	call := ids.Derive(w.Root, 1)
	send(&wire.Submit{Spec: &wire.TaskSpec{
		ID: call, Parent: w.Root, Kind: wire.TaskActorCall, Actor: ids.ActorID(far), Seq: 1, Opts: &wire.TaskOptions{Func: "f", NumReturns: 1},
	}}, &wire.Get{ID: call.Return(0)})
	await(t, c, "a call", resolved(call.Return(0), errs.ErrActorUnavailable))
	send(&wire.KillActor{Actor: ids.ActorID(far)}, &wire.Cancel{Task: far}, &wire.Release{IDs: []ids.ObjectID{object, far.Return(1)}}, &wire.Get{ID: box})
	await(t, c, "behind what has no answer", func(m wire.Msg) bool { r, ok := m.(*wire.Resolved); return ok && r.ID == box })
}

// A worker ends a task of a job that is over: nobody but the node tells the store that it reads its arguments no more.
func TestTheEndOfATaskWhoseJobIsOverGivesItsArgumentsBack(t *testing.T) {
	n, _ := running(t, Config{}, Telemetry{})
	pinned := func() uint64 {
		said := make(chan uint64, 1)
		n.store.deliver(objectstore.Inspect{Do: func(c *objectstore.Core) {
			select {
			case said <- c.Stats().Pinned:
			default: // asked again after a restart
			}
		}})
		return testkit.Receive(t, "the store's answer", said)
	}
	worker, w := dialled(t, n, wire.RoleDriver)
	caller, c := dialled(t, n, wire.RoleDriver)
	object, task := w.Root.Put(1), ids.Derive(c.Root, 1)
	room := func(req uint64, id ids.ObjectID, before ...wire.Msg) {
		t.Helper()
		if err := worker.Send(append(before, &wire.Create{Req: req, ID: id, Size: 1 << 17})...); err != nil {
			t.Fatal(err)
		}
		await(t, worker, "room", func(m wire.Msg) bool { return m.Kind() == wire.KindCreated })
	}
	room(1, object)
	if err := worker.Send(&wire.Seal{ID: object, Size: 1 << 17}, &wire.Get{ID: object, Fetch: true}); err != nil {
		t.Fatal(err)
	}
	await(t, worker, "the object", func(m wire.Msg) bool { return m.Kind() == wire.KindResolved })
	n.store.deliver(objectstore.PinArgs{Job: c.Job, Task: task, Attempt: 1, Worker: w.Client, IDs: []ids.ObjectID{object}})
	room(2, w.Root.Put(2), &wire.Unpin{ID: object, N: 1})
	if err := caller.Send(&wire.Bye{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the job is over", func() bool { return n.owners.get(c.Job) == nil })
	room(3, w.Root.Put(3), &wire.Done{Task: task, Attempt: 1, StillRuns: true})
	if pinned() == 0 {
		t.Error("the task still runs, and its arguments were given back")
	}
	room(4, w.Root.Put(4), &wire.Done{Task: task, Attempt: 1})
	if n := pinned(); n != 0 {
		t.Errorf("the task has ended, and %d bytes are pinned", n)
	}
}
