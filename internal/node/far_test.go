package node

import (
	"context"
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/internal/testkit"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/remote"
	remoteshell "mobula/remote/shell"
	transfershell "mobula/remote/transfer/shell"
	"mobula/wire"
	"mobula/wire/conn"
)

// nthHome gives whoever asks one home.
type nthHome ids.Home

func (h nthHome) Begin(_ context.Context, c register.Claim) (register.Row, error) {
	return register.First(ids.Home(h), c), nil
}

// twoNodes runs nodes 1 and 2 of a cluster.
func twoNodes(t *testing.T) (one, two *Node) {
	t.Helper()
	net, pipes := remoteshell.NewMemory(), transfershell.NewPipes()
	start := func(home, other ids.Home) *Node {
		transport, err := net.Listen(home.String())
		if err != nil {
			t.Fatal(err)
		}
		n, _ := running(t, Config{Name: "n" + home.String(), Cluster: &Cluster{
			Name: "test", Register: nthHome(home), Transport: transport, Objects: pipes.Node(home),
			Address: func(_ context.Context, h ids.Home) (string, error) { return h.String(), nil },
			Verify:  func(tls.ConnectionState, ids.Home) error { return nil },
			Others:  func() []ids.Home { return []ids.Home{other} },
		}}, Telemetry{})
		return n
	}
	return start(1, 2), start(2, 1)
}

// speaker is a driver that speaks the protocol by hand.
type speaker struct {
	t    *testing.T
	c    *conn.Conn
	w    *wire.Welcome
	reqs uint64
}

func speaks(t *testing.T, n *Node) *speaker {
	t.Helper()
	c, w := dialled(t, n, wire.RoleDriver)
	return &speaker{t: t, c: c, w: w}
}

func (d *speaker) say(msgs ...wire.Msg) {
	d.t.Helper()
	if err := d.c.Send(msgs...); err != nil {
		d.t.Fatal(err)
	}
}

// inline puts a value that travels in messages, with these references, and stored one that does not. The owner has it then: who asks for what it has not is told
// that it was freed.
func (d *speaker) inline(n uint32, v string, refs ...ids.ObjectID) ids.ObjectID {
	d.t.Helper()
	id := d.w.Root.Put(n)
	d.say(&wire.PutValue{ID: id, Value: wire.Value{Data: []byte(v), Refs: refs}})
	d.wants(id, v)
	return id
}

func (d *speaker) stored(n uint32) ids.ObjectID {
	d.t.Helper()
	id := d.w.Root.Put(n)
	d.reqs++
	d.say(&wire.Create{Req: d.reqs, ID: id, Size: 1 << 17})
	await(d.t, d.c, "room", func(m wire.Msg) bool { return m.Kind() == wire.KindCreated })
	d.say(&wire.Seal{ID: id, Size: 1 << 17}, &wire.Get{ID: id})
	await(d.t, d.c, "object "+id.String(), func(m wire.Msg) bool {
		r, ok := m.(*wire.Resolved)
		return ok && r.ID == id
	})
	return id
}

// get gives what an object is.
func (d *speaker) get(id ids.ObjectID) (out wire.Result) {
	d.t.Helper()
	d.say(&wire.Get{ID: id, Fetch: true})
	await(d.t, d.c, "object "+id.String(), func(m wire.Msg) bool {
		r, ok := m.(*wire.Resolved)
		if ok = ok && r.ID == id; ok {
			out = r.Result
		}
		return ok
	})
	return out
}

func (d *speaker) wants(id ids.ObjectID, v string) {
	d.t.Helper()
	if r := d.get(id); r.Kind != wire.ResultInline || string(r.Value.Data) != v {
		d.t.Fatalf("object %v is %+v, want %q", id, r, v)
	}
}

func (d *speaker) fails(id ids.ObjectID, want error) bool {
	d.t.Helper()
	r := d.get(id)
	return r.Err != nil && errors.Is(r.Err, want)
}

func (d *speaker) wantsError(id ids.ObjectID, want error, words string) {
	d.t.Helper()
	if r := d.get(id); r.Err == nil || !errors.Is(r.Err, want) || !strings.Contains(r.Err.Error(), words) {
		d.t.Fatalf("object %v is %+v, want %v that says %q", id, r, want, words)
	}
}

// heldOf tells how many objects of its own the owner of a job has.
func heldOf(n *Node, job ids.JobID) int {
	o := n.owners.get(job)
	if o == nil {
		return 0
	}
	held, err := inspect.InOwner(context.Background(), o.shown, func(c *owner.Core) int { return c.Gauges().Objects })
	if err != nil {
		return -1
	}
	return held
}

// A job has references to objects of a job of another node: it reads them, holds them, and gives them back.
func TestAReferenceToAnObjectOfAnotherHome(t *testing.T) {
	one, two := twoNodes(t)
	a, b := speaks(t, one), speaks(t, two)
	small, inner := a.inline(1, "small"), a.inline(2, "inner")
	box, large := a.inline(3, "box", inner), a.stored(4)

	b.say(&wire.AddRef{ID: small}, &wire.AddRef{ID: box}, &wire.AddRef{ID: large})
	b.wants(small, "small")
	for range 2 { // the second time the store has a copy
		if r := b.get(large); r.Kind != wire.ResultStored || r.Size != 1<<17 {
			t.Fatalf("it is %+v", r)
		}
	}
	b.wants(box, "box")

	// Who has made them lets go of them: they stay, and so does what is in one.
	a.say(&wire.Release{IDs: []ids.ObjectID{small, inner, box, large}})
	a.inline(5, "behind")
	b.wants(small, "small")
	b.say(&wire.AddRef{ID: inner}, &wire.Release{IDs: []ids.ObjectID{box}})
	b.wants(inner, "inner")

	// A value of the other job may have one inside.
	mine := b.inline(1, "mine", small)
	b.say(&wire.Release{IDs: []ids.ObjectID{small}})
	b.wants(mine, "mine")
	b.say(&wire.AddRef{ID: small})
	b.wants(small, "small")

	b.say(&wire.Release{IDs: []ids.ObjectID{small, inner, large, mine}})
	a.say(&wire.Release{IDs: []ids.ObjectID{a.w.Root.Put(5)}})
	testkit.Eventually(t, "nothing is left of the first job", func() bool { return heldOf(one, a.w.Job) == 0 })
	testkit.Eventually(t, "nothing is left of the second job", func() bool { return heldOf(two, b.w.Job) == 0 })
	b.say(&wire.AddRef{ID: small})
	b.wantsError(small, errs.ErrObjectFreed, "")
}

// A job that ends takes its objects along, and gives back what it held on another node.
func TestAJobOfAnotherHomeEnds(t *testing.T) {
	one, two := twoNodes(t)
	a, b := speaks(t, one), speaks(t, two)
	small, theirs := a.inline(1, "small"), b.inline(1, "theirs")
	b.say(&wire.AddRef{ID: small})
	b.wants(small, "small")
	a.say(&wire.AddRef{ID: theirs})
	a.wants(theirs, "theirs")
	b.say(&wire.Release{IDs: []ids.ObjectID{theirs}})
	pending := ids.Derive(a.w.Root, 9).Return(0) // nobody has made it yet
	b.say(&wire.AddRef{ID: pending})
	a.say(&wire.Bye{})
	testkit.Eventually(t, "what the job held is given back", func() bool { return b.fails(theirs, errs.ErrObjectFreed) })
	b.wantsError(pending, errs.ErrOwnerDied, "has ended")
	b.say(&wire.AddRef{ID: a.w.Root.Put(2)})
	b.wantsError(a.w.Root.Put(2), errs.ErrOwnerDied, "has ended")
	testkit.Eventually(t, "nothing is left of what they had with each other", func() bool {
		return len(two.links.far.dealings.Of(b.w.Job))+len(one.links.far.dealings.Of(a.w.Job)) == 0
	})
}

// The death of a node takes its jobs along: their objects fail with an error that names it, and what they held is given back.
func TestTheHomeOfAReferenceDies(t *testing.T) {
	one, two := twoNodes(t)
	a, b := speaks(t, one), speaks(t, two)
	large, theirs := a.stored(1), b.inline(1, "theirs")
	b.say(&wire.AddRef{ID: large})
	if r := b.get(large); r.Kind != wire.ResultStored {
		t.Fatalf("it is %+v", r)
	}
	a.say(&wire.AddRef{ID: theirs})
	a.wants(theirs, "theirs")
	b.say(&wire.Release{IDs: []ids.ObjectID{theirs}})
	b.wants(theirs, "theirs")
	was := remote.Life{Home: 1, Epoch: one.numbers.Epoch()}
	two.links.lives.end(was)
	if err := two.links.hub.Fence(was.Home, was.Epoch); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "what its jobs held is given back", func() bool { return b.fails(theirs, errs.ErrObjectFreed) })
	b.wantsError(large, errs.ErrOwnerDied, "node n1, its home, is dead")
	b.say(&wire.AddRef{ID: a.w.Root.Put(2)})
	b.wantsError(a.w.Root.Put(2), errs.ErrOwnerDied, "node n1, its home, is dead")
}

// A node of a release that has no messages for owners is sent none: who wants an object of it is told why, also if it asked before the two had talked.
func TestAReferenceToAnObjectOfAnOlderNode(t *testing.T) {
	n, net, _ := inACluster(t)
	n.links.called(3, "n3")
	far := ids.RootTask(ids.JobID(ids.Home(3).ID(7)), 1)
	b := speaks(t, n)
	b.say(&wire.AddRef{ID: far.Put(1)}, &wire.Get{ID: far.Put(1)})
	transport, err := net.Listen("3")
	if err != nil {
		t.Fatal(err)
	}
	sys := actors.NewSystem(actors.Config{})
	hub, err := remoteshell.Open(sys, remoteshell.Config{
		Self: remote.Life{Home: 3, Epoch: 1}, Cluster: "test", Versions: remoteshell.Versions{Max: internode.PeersTalk - 1, Min: 1}, Transport: transport,
		Address: func(_ context.Context, h ids.Home) (string, error) { return h.String(), nil },
		Verify:  func(tls.ConnectionState, ids.Home) error { return nil },
		Deliver: func(remote.Life, []byte) {}, Notice: func(ids.Home, remote.Notice) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(hub.Close(t.Context()), sys.StopTree(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if err := hub.TrySend(remote.Life{Home: 1}, []byte{byte(internode.KindJobClosed)<<3 | 2, 0}); err != nil {
		t.Fatal(err)
	}
	b.wantsError(far.Put(1), errs.ErrVersion, "node n3 speaks version 2")
	b.say(&wire.AddRef{ID: far.Put(2)})
	b.wantsError(far.Put(2), errs.ErrVersion, "node n3 speaks version 2")
}

// A node that was never of the cluster has no jobs: nobody waits for it.
func TestAReferenceToAnObjectOfNoNode(t *testing.T) {
	transport, err := remoteshell.NewMemory().Listen("1")
	if err != nil {
		t.Fatal(err)
	}
	n, err := Start(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "n"), StoreBytes: 64 << 20, Cluster: &Cluster{
		Name: "test", Register: firstHome{}, Transport: transport, Objects: transfershell.NewPipes().Node(1),
		Address: func(_ context.Context, h ids.Home) (string, error) { return h.String(), nil },
		Verify:  func(tls.ConnectionState, ids.Home) error { return nil },
		Others:  func() []ids.Home { return nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b := speaks(t, n)
	id := ids.RootTask(ids.JobID(ids.Home(9).ID(7)), 1).Put(1)
	b.say(&wire.AddRef{ID: id})
	b.wantsError(id, errs.ErrOwnerDied, "node 9, its home, is not in the cluster")
}
