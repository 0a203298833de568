package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"mobula/actors"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore"
	"mobula/raylet/internode"
	"mobula/raylet/sched"
	"mobula/remote"
	remoteshell "mobula/remote/shell"
	transfershell "mobula/remote/transfer/shell"
	"mobula/wire"
)

// firstHome gives whoever asks home 1.
type firstHome struct{}

func (firstHome) Begin(_ context.Context, c register.Claim) (register.Row, error) {
	return register.First(1, c), nil
}

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// inACluster runs node 1 of a cluster of which nobody else is there.
func inACluster(t *testing.T) (*Node, *remoteshell.Memory, *logged) {
	t.Helper()
	net := remoteshell.NewMemory()
	transport, err := net.Listen("1")
	if err != nil {
		t.Fatal(err)
	}
	log := new(logged)
	n, _ := running(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil)), Cluster: &Cluster{
		Name: "test", Register: firstHome{}, Transport: transport, Objects: transfershell.NewPipes().Node(1),
		Address: func(_ context.Context, h ids.Home) (string, error) { return h.String(), nil },
		Verify:  func(tls.ConnectionState, ids.Home) error { return nil },
		Others:  func() []ids.Home { return []ids.Home{3} },
	}}, Telemetry{})
	return n, net, log
}

// A node that runs a job here, and speaks for others too, changes nothing of theirs; what else it says in the same breath is heard.
func TestANodeSpeaksForItsOwnJobsAlone(t *testing.T) {
	n, _, log := inACluster(t)
	c, w := dialled(t, n, wire.RoleDriver)
	object, theirs := w.Root.Put(1), ids.JobID(ids.Home(3).ID(7))
	send := func(m wire.Msg, what string, is func(wire.Msg) bool) {
		t.Helper()
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
		await(t, c, what, is)
	}
	send(&wire.Create{Req: 1, ID: object, Size: 1 << 17}, "room", func(m wire.Msg) bool { return m.Kind() == wire.KindCreated })
	if err := c.Send(&wire.Seal{ID: object, Size: 1 << 17}); err != nil {
		t.Fatal(err)
	}
	read := func() {
		t.Helper()
		send(&wire.Get{ID: object, Fetch: true}, "the object", func(m wire.Msg) bool {
			r, ok := m.(*wire.Resolved)
			if ok && r.Result.Kind != wire.ResultStored {
				t.Fatalf("it is %+v", r.Result)
			}
			return ok
		})
	}
	read()

	var e internode.Encoder
	payload, err := e.Append(nil,
		&internode.OpenJob{Job: theirs, Args: []string{"x"}},
		&internode.ToStore{Job: theirs, Msg: objectstore.Free{IDs: []ids.ObjectID{object}}},
		&internode.ToStore{Job: theirs, Msg: objectstore.DropJob{Job: w.Job}},
		&internode.ToSched{Job: theirs, Msg: sched.DropJob{Job: w.Job}},
		&internode.CloseJob{Job: w.Job},
		&internode.FromSched{Job: w.Job, Msg: sched.Revoked{Lease: ids.LeaseID(ids.Home(1).ID(1))}},
		&internode.ClientGone{Job: w.Job, Client: w.Client},
		&internode.AskTime{Node: "n3", Sent: 1},
	)
	if err != nil {
		t.Fatal(err)
	}
	n.links.deliver(remote.Life{Home: 3, Epoch: 1}, payload)
	if name := n.links.nameOf(3); name != "n3" {
		t.Errorf("what followed was not heard: the node is called %q", name)
	}
	if n.links.agent(theirs) == nil {
		t.Error("its own job is not open here")
	}
	if !strings.Contains(log.String(), "refused") {
		t.Errorf("nothing says that it was refused: %s", log)
	}
	read()
}

// A message that this build does not know is named in the log, and those before it count.
func TestAnUnknownMessageIsNamed(t *testing.T) {
	n, _, log := inACluster(t)
	var e internode.Encoder
	payload, err := e.Append(nil, &internode.AskTime{Node: "n3", Sent: 1})
	if err != nil {
		t.Fatal(err)
	}
	n.links.deliver(remote.Life{Home: 3, Epoch: 1}, append(payload, 0xea, 0x07, 0)) // kind 125, of no bytes
	if name := n.links.nameOf(3); name != "n3" {
		t.Errorf("the message before is lost: the node is called %q", name)
	}
	if !strings.Contains(log.String(), "kind 125") {
		t.Errorf("nothing names it: %s", log)
	}
}

// A node whose release speaks none of this one's versions is refused, and both are named: it is not let in, and then misunderstood.
func TestANodeOfAnotherVersionIsRefused(t *testing.T) {
	_, net, log := inACluster(t)
	transport, err := net.Listen("3")
	if err != nil {
		t.Fatal(err)
	}
	later := remoteshell.Versions{Max: internode.Version + 7, Min: internode.Version + 6}
	sys := actors.NewSystem(actors.Config{})
	hub, err := remoteshell.Open(sys, remoteshell.Config{
		Self: remote.Life{Home: 3, Epoch: 1}, Cluster: "test", Versions: later, Transport: transport,
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
	if err := hub.TrySend(remote.Life{Home: 1}, []byte("x")); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("speaks versions %d to %d, this one %d to %d", later.Min, later.Max, internode.MinVersion, internode.Version)
	testkit.Eventually(t, "it is refused", func() bool {
		all := hub.Peers()
		return len(all) == 1 && errors.Is(all[0].Err, remoteshell.ErrRefused) && strings.Contains(all[0].Err.Error(), want) && strings.Contains(log.String(), want)
	})
}

// Each message between nodes has its place.
func TestEveryMessageBetweenNodesHasItsPlace(t *testing.T) {
	places, err := os.ReadFile("links.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range []string{"msg.go", "ask.go", "time.go"} {
		text, err := os.ReadFile("../../raylet/internode/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func \(\*(\w+)\) msg\(\)`).FindAllSubmatch(text, -1) {
			found++
			if !regexp.MustCompile(`case [^:]*\*internode\.` + string(m[1]) + `[,:]`).Match(places) {
				t.Errorf("nobody takes a %s", m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d messages are found", found)
	}
}
