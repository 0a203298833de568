package shell

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"mobula/actors"
	"mobula/gcs"
	"mobula/gcs/gcstest"
	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/remote"
)

// A control plane on tables in this process answers in the same way.
func TestAControlPlaneOnMemory(t *testing.T) {
	ctx := testkit.Within(t)
	tables := NewMemory()
	for life := range 2 {
		sys := actors.NewSystem(actors.Config{})
		g, err := Start(sys, Config{Tables: tables, Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Call(ctx, gcs.Claim{Actor: actor("hits", "a")}); err != nil {
			t.Errorf("life %d: %v", life, err)
		}
		if _, err := g.Call(ctx, gcs.Claim{Actor: actor("hits", "b")}); !errors.Is(err, errs.ErrNameTaken) {
			t.Errorf("life %d: %v", life, err)
		}
		stopTest(t, sys)
	}
}

// Two nodes with one server see each other and share names. A node that stops leaves the table at once.
func TestNodesShareAServer(t *testing.T) {
	url := gcstest.Server(t)
	ctx := testkit.Within(t)
	join := func(h ids.Home, name string) (*actors.System, *GCS) {
		t.Helper()
		sys := actors.NewSystem(actors.Config{})
		g, err := Start(sys, Config{Servers: []string{url}, Node: name})
		if err != nil {
			t.Fatal(err)
		}
		g.Announce(gcs.NodeRecord{Home: h, Name: name}, 20*time.Millisecond)
		return sys, g
	}
	sysA, a := join(1, "a")
	defer stopTest(t, sysA)
	sysB, b := join(2, "b")
	sees := func(what string, is func([]gcs.Record) bool) {
		t.Helper()
		for {
			rows, err := a.Call(ctx, gcs.List{Bucket: gcs.Nodes})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if is(rows) {
				return
			}
		}
	}
	sees("both beat", func(rows []gcs.Record) bool {
		return len(rows) == 2 && rows[0].(gcs.NodeRecord).Beats > 2 && rows[1].(gcs.NodeRecord).Beats > 2 && !rows[1].(gcs.NodeRecord).Silent
	})
	if _, err := a.Call(ctx, gcs.Claim{Actor: actor("hits", "a")}); err != nil {
		t.Error(err)
	}
	if _, err := b.Call(ctx, gcs.Claim{Actor: actor("hits", "b")}); !errors.Is(err, errs.ErrNameTaken) {
		t.Errorf("the other node's name: %v", err)
	}
	stopTest(t, sysB)
	sees("one has left", func(rows []gcs.Record) bool { return len(rows) == 1 })
}

// A name may be long, and one that is too long for the server breaks nothing.
func TestLongNames(t *testing.T) {
	sys := actors.NewSystem(actors.Config{})
	defer stopTest(t, sys)
	g, err := Start(sys, Config{Servers: []string{gcstest.Server(t)}, Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Within(t)
	for _, n := range []int{1000, 5000, 100_000} {
		name := strings.Repeat("n", n)
		if _, err := g.Call(ctx, gcs.Claim{Actor: actor(name, "a")}); err != nil {
			t.Fatalf("a name of %d bytes: %v", n, err)
		}
		if _, err := g.Call(ctx, gcs.Claim{Actor: actor(name, "b")}); !errors.Is(err, errs.ErrNameTaken) {
			t.Errorf("a name of %d bytes that another has: %v", n, err)
		}
		rows, err := g.Call(ctx, gcs.Lookup{Bucket: gcs.Actors, Key: actor(name, "").Key()})
		if err != nil || len(rows) != 1 || rows[0].(gcs.ActorRecord).Name != name {
			t.Errorf("a name of %d bytes is found as %d rows, %v", n, len(rows), err)
		}
	}
	if _, err := g.Call(ctx, gcs.Claim{Actor: actor(strings.Repeat("n", 4<<20), "a")}); err == nil {
		t.Error("a name that is too long is taken")
	}
	if _, err := g.Call(ctx, gcs.Claim{Actor: actor("hits", "a")}); err != nil {
		t.Error(err)
	}
}

// A server without JetStream can keep no tables.
func TestAServerWithoutJetStream(t *testing.T) {
	sys := actors.NewSystem(actors.Config{})
	defer stopTest(t, sys)
	_, err := Start(sys, Config{Servers: []string{gcstest.Start(t, &server.Options{})}, Node: "n1"})
	if !errors.Is(err, errs.ErrComponentFailed) {
		t.Errorf("got %v", err)
	}
}

// Servers that are not there are named, without their passwords.
func TestServersThatAreNotThere(t *testing.T) {
	sys := actors.NewSystem(actors.Config{})
	defer stopTest(t, sys)
	_, err := Start(sys, Config{Servers: []string{"nats://me:secret@127.0.0.1:1"}, Node: "n1"})
	if !errors.Is(err, errs.ErrComponentFailed) {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "me:xxxxx@127.0.0.1:1") || strings.Contains(text, "secret") {
		t.Errorf("it says %q", text)
	}
}

// A control-plane server of a cluster whose tables are in a server of another's ends the life of a node that is not heard any more, and a node that is accused
// sooner than one that is not.
func TestAJudgeOfTablesElsewhere(t *testing.T) {
	t.Parallel()
	url := gcstest.Server(t)
	fenced := make(chan remote.Life, 10)
	var nodes []*GCS
	for i, name := range []string{"judge", "silent", "accuses"} {
		sys := actors.NewSystem(actors.Config{})
		defer stopTest(t, sys)
		g, err := Start(sys, Config{Servers: []string{url}, Judges: i == 0, Node: name, Fenced: func(l remote.Life) {
			if i == 2 {
				fenced <- l
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if (g.Trust() != nil) != (i == 0) {
			t.Errorf("%s has the authority's table: %v", name, g.Trust() != nil)
		}
		row, err := Register{GCS: g, Node: name}.Begin(t.Context(), register.Claim{Identity: name, Life: name})
		if err != nil {
			t.Fatal(err)
		}
		g.Announce(gcs.NodeRecord{Home: row.Home, Epoch: row.Epoch, Name: name}, time.Second)
		nodes = append(nodes, g)
	}
	testkit.Eventually(t, "all beat", func() bool {
		rows, err := nodes[0].Call(t.Context(), gcs.List{Bucket: gcs.Nodes})
		return err == nil && len(rows) == 3
	})
	nodes[1].nc.Close()
	silent := remote.Life{Home: 1, Epoch: 1}
	late := time.After(testkit.Patience())
	for again := time.NewTicker(time.Second); ; {
		select {
		case l := <-fenced:
			if l != silent {
				t.Errorf("fenced is %v, want %v", l, silent)
			}
			return
		case <-again.C:
			nodes[2].Accuse(silent)
		case <-late:
			t.Fatal("the silent node is not fenced")
		}
	}
}

// What the client of NATS meets beside its calls is in the log, and not on standard error.
func TestFaultsOfAConnectionAreLogged(t *testing.T) {
	user := &server.User{Username: "u", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"forbidden"}}}}
	url := gcstest.Start(t, &server.Options{JetStream: true, StoreDir: t.TempDir(), Users: []*server.User{user}})
	lines := make(chan string, 100)
	sys := actors.NewSystem(actors.Config{})
	g, err := Start(sys, Config{Servers: []string{strings.Replace(url, "nats://", "nats://u:p@", 1)}, Node: "n1", Logger: slog.New(slog.NewTextHandler(writer(func(b []byte) { lines <- string(b) }), nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer stopTest(t, sys)
	if err := g.nc.Publish("forbidden", nil); err != nil {
		t.Fatal(err)
	}
	for line := ""; !strings.Contains(line, "forbidden"); {
		line = strings.ToLower(testkit.Receive(t, "a line that names the subject", lines))
	}
}

// writer is a function as an io.Writer.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// What the server warns of that is so on purpose is no warning to the operator; everything else is.
func TestWarningsOfWhatIsSoOnPurpose(t *testing.T) {
	var lines []string
	log := natsLog{slog.New(slog.NewTextHandler(writer(func(b []byte) { lines = append(lines, string(b)) }), &slog.HandlerOptions{Level: slog.LevelInfo}))}
	for _, text := range onPurpose {
		log.Warnf("%s and so on", text)
	}
	if log.Warnf("the disk is %s", "slow"); len(lines) != 1 || !strings.Contains(lines[0], "the disk is slow") {
		t.Errorf("the log has %q", lines)
	}
}
