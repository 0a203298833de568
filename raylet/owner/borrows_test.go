package owner

import (
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

const away ids.Home = 5

// atStore gives what the last step told the store of a node.
func atStore[M any](s *script, node ids.Home) (out []M) {
	for _, e := range s.out {
		if m, ok := e.msg.(M); ok && e.Kind == ToStore && e.Node == node {
			out = append(out, m)
		}
	}
	return out
}

// wantGetPins fails the test unless the last step had the store of a node, and no other, pin for so many gets.
func (s *script) wantGetPins(node ids.Home, n int) {
	s.t.Helper()
	if got, all := atStore[objectstore.PinForGet](s, node), told[objectstore.PinForGet](s); len(got) != n || len(all) != n {
		s.t.Fatalf("the store of node %v is asked for %+v, all for %+v; want %d", node, got, all, n)
	}
}

func farStored() *wire.Resolved {
	return &wire.Resolved{ID: farPut, Result: wire.Result{Kind: wire.ResultStored, Size: 10}}
}

// The store of a node is asked for another job's object when that one's owner has told it where the object is, and its owner is asked for that once a node.
func TestWhatIsBorrowedIsBroughtFirst(t *testing.T) {
	s := newScript(t, Config{})
	one, two := s.elsewhere(away, 1), s.elsewhere(away, 2)
	get := &wire.Get{ID: farPut, Fetch: true}
	s.from(one, &wire.AddRef{ID: farPut}, get)
	s.wantSaid("AddRef", "Get")
	s.fromFar(farStored())
	s.wantSaid("Bring")
	if b := told[Bring](s); b[0] != (Bring{ID: farPut, Node: away}) {
		t.Fatalf("it asks %+v", b)
	}
	s.from(two, get)
	s.wantSaid()
	s.from(driver, get)
	s.wantSaid("Bring") // to its node
	s.fromFar(Brought{ID: farPut, Node: away})
	s.wantGetPins(away, 2)
	s.fromFar(Brought{ID: farPut, Node: away}) // said twice
	s.wantGetPins(away, 0)
	s.from(two, get)
	s.wantGetPins(away, 1)
	s.from(driver, &wire.Unget{ID: farPut})
	s.fromFar(Brought{ID: farPut})
	s.wantGetPins(0, 0)
	s.from(driver, get)
	s.wantGetPins(0, 1)
	if loc := told[objectstore.Located](s); len(loc) != 0 {
		t.Errorf("this owner, which does not know, says that it is at %+v", loc)
	}

	s.step(FromStore{Node: away, Msg: objectstore.Lost{ID: farPut, Client: one, Err: errs.New(errs.CodeObjectLost, "gone")}})
	if l := told[BorrowLost](s); len(l) != 1 || l[0].Node != away {
		t.Fatalf("its owner hears of %+v", l)
	}
	s.fromFar(farStored())
	s.wantSaid("Bring")
	s.fromFar(&wire.Resync{Component: wire.ComponentOwner, Epoch: 3}) // its owner was restarted
	s.wantSaid("holds 1", "Bring")
	s.from(driver, get)
	s.wantSaid("Bring")
	s.step(NodeGone{Node: away, Err: errs.New(errs.CodeWorkerCrashed, "dead")})
	s.fromFar(Brought{ID: farPut, Node: away})
	s.wantGetPins(away, 0)
	s.fromFar(JobGone{})
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || r[0].Result.Err == nil || r[0].Result.Err.Code != errs.CodeOwnerDied {
		t.Errorf("who waits when its job ends gets %+v", r)
	}
}

// So with a task's arguments: they are pinned when the store knows of all of them, unless the task has gone elsewhere meanwhile.
func TestBorrowedArgumentsAreBroughtFirst(t *testing.T) {
	s := newScript(t, Config{})
	on := s.elsewhere(away, 1)
	own := s.make("own", worker)
	s.from(driver, &wire.AddRef{ID: farPut})
	other := ids.RootTask(far, 1).Put(2)
	s.from(driver, &wire.AddRef{ID: other})
	task := s.submit(&wire.TaskOptions{Func: "take", NumReturns: 1}, wire.Arg{Ref: own}, wire.Arg{Ref: farPut}, wire.Arg{Ref: other})
	s.fromFar(farStored())
	x := farStored()
	x.ID = other
	s.fromFar(x)
	s.grant(on)
	s.wantSaid("Bring", "Bring")
	s.fromFar(Brought{ID: farPut, Node: away})
	if p := told[objectstore.PinArgs](s); len(p) != 0 {
		t.Fatalf("pinned before all is known: %+v", p)
	}
	s.fromFar(Brought{ID: other, Node: away})
	if got := s.pinnedOn(task.ID); got != on {
		t.Errorf("they are pinned for %v", got)
	}
	if p := told[objectstore.PinArgs](s); len(p) != 1 || len(p[0].IDs) != 3 {
		t.Errorf("pinned are %+v", p)
	}

	late := ids.RootTask(far, 1).Put(3)
	s.from(driver, &wire.AddRef{ID: late})
	x = farStored()
	x.ID = late
	s.submit(&wire.TaskOptions{Func: "late", NumReturns: 1, MaxRetries: 1}, wire.Arg{Ref: late})
	s.fromFar(x)
	s.grant(on)
	s.wantSaid("Bring")
	s.step(ClientGone{Client: on, Err: errs.New(errs.CodeWorkerCrashed, "dead")})
	s.fromFar(Brought{ID: late, Node: away})
	if p := told[objectstore.PinArgs](s); len(p) != 0 {
		t.Errorf("pinned for a worker that is gone: %+v", p)
	}
}

// An owner has the store of a node know where an object is: on another node when the job is open there, which it asks for.
func TestAnObjectIsBroughtToANode(t *testing.T) {
	s := newScript(t, Config{})
	mine := s.make("mine", worker)
	s.fromFar(&wire.AddRef{ID: mine})
	bring := func(node ids.Home, located int, said ...string) {
		t.Helper()
		s.fromFar(Bring{ID: mine, Node: node})
		s.wantSaid(said...)
		if l := atStore[objectstore.Located](s, node); len(l) != located {
			t.Fatalf("the store of node %v hears %+v", node, l)
		}
	}
	opens := func() int {
		n := 0
		for _, h := range told[cluster.Holds](s) {
			if h.Node == away && h.Objects {
				n++
			}
		}
		return n
	}
	bring(0, 0, "Brought") // it is there
	bring(away, 0)
	if opens() == 0 {
		t.Fatal("the job is not opened there")
	}
	s.step(JobOpened{Node: away})
	s.wantSaid("Brought")
	if l := atStore[objectstore.Located](s, away); len(l) != 1 || l[0].Attempt != 1 || len(l[0].On) != 1 || l[0].On[0] != 0 {
		t.Fatalf("the store there hears %+v", l)
	}
	bring(away, 1, "Brought")
	s.step(FromStore{Node: away, Msg: objectstore.Imported{ID: mine, Attempt: 1}})

	// Its node says that it has lost the object: who keeps it is asked, and it is not brought again at once.
	s.fromFar(BorrowLost{Node: away, Lost: objectstore.Lost{ID: mine, Copy: 1, Err: errs.New(errs.CodeObjectLost, "gone")}})
	if l := atStore[objectstore.Located](s, 0); len(l) != 1 || len(l[0].On) != 0 {
		t.Fatalf("who keeps it is asked %+v", l)
	}
	s.now += int64(10 * time.Millisecond)
	bring(away, 0)
	s.pass(20 * time.Millisecond)
	s.wantSaid("Brought")
	s.step(FromStore{Node: away, Msg: objectstore.Imported{ID: mine, Attempt: 1}})

	s.step(NodeGone{Node: away, Err: errs.New(errs.CodeWorkerCrashed, "dead")})
	s.now += int64(10 * time.Second)
	bring(away, 0) // its next life
	s.step(NodeDoubted{Node: away, Err: errs.New(errs.CodeWorkerCrashed, "silent")})
	if opens() == 0 {
		t.Error("what the other job has there is not brought any more")
	}
	s.step(JobOpened{Node: away})
	s.wantSaid("Brought")

	s.from(driver, &wire.Release{IDs: []ids.ObjectID{mine}})
	s.fromFar(&wire.Release{IDs: []ids.ObjectID{mine}})
	if f := atStore[objectstore.Free](s, away); len(f) != 1 || f[0].IDs[0] != mine {
		t.Errorf("at the end the store there is to free %+v", f)
	}
	bring(away, 0, "Brought")
	if b := told[Brought](s); !b[0].Gone {
		t.Error("what nobody has is there")
	}
}

// What its owner does not have any more is asked for anew, and its store for nothing.
func TestWhatCannotBeBroughtIsAskedForAnew(t *testing.T) {
	s := newScript(t, Config{})
	on := s.elsewhere(away, 1)
	get := &wire.Get{ID: farPut, Fetch: true}
	s.from(driver, &wire.AddRef{ID: farPut})
	s.from(on, get)
	s.fromFar(farStored())
	s.submit(&wire.TaskOptions{Func: "take", NumReturns: 1}, wire.Arg{Ref: farPut})
	s.grant(on)
	s.fromFar(Brought{ID: farPut, Node: away, Gone: true})
	s.wantSaid("Get")
	s.wantGetPins(away, 0)
	s.fromFar(&wire.Resolved{ID: farPut, Result: *errorResult(errs.New(errs.CodeOwnerDied, "its job has ended"))})
	if r := sent[*wire.Resolved](s, on); len(r) != 1 || r[0].Result.Err == nil || r[0].Result.Err.Code != errs.CodeOwnerDied {
		t.Errorf("who waits gets %+v", r)
	}
}

// What another node has made is brought to this one.
func TestAnObjectOfAnotherNodeIsBroughtHome(t *testing.T) {
	s := newScript(t, Config{})
	mine := s.make("mine", s.elsewhere(away, 1))
	s.fromFar(&wire.AddRef{ID: mine})
	s.fromFar(Bring{ID: mine})
	s.wantSaid("Brought")
	if l := atStore[objectstore.Located](s, 0); len(l) != 1 || len(l[0].On) != 1 || l[0].On[0] != away {
		t.Errorf("the store here hears %+v", l)
	}
}

// What was brought to a third node for another job is a copy like any other: it is the object when the node that kept it dies, and nothing is made again.
func TestWhatWasBroughtOutlivesTheNodeThatKeptIt(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.madeFrom(s.elsewhere(farNode, 1), s.put(1, 8))
	mine := spec.ID.Return(0)
	s.fromFar(&wire.AddRef{ID: mine})
	s.fromFar(Bring{ID: mine, Node: third})
	s.step(JobOpened{Node: third})
	s.wantSaid("Brought")
	s.step(FromStore{Node: third, Msg: objectstore.Imported{ID: mine, Attempt: 1}})
	s.step(NodeGone{Node: farNode, Err: errs.New(errs.CodeWorkerCrashed, "dead")})
	if l := atStore[objectstore.Located](s, third); len(l) != 1 || len(l[0].On) != 0 {
		t.Errorf("the store that has it is told %+v", l)
	}
	if s.state(spec) != task.Finished || s.c.stats.Lost != 0 {
		t.Errorf("its task is %v, %d objects are lost", s.state(spec), s.c.stats.Lost)
	}
}

// third is a node that is neither the job's own nor farNode.
const third ids.Home = 6
