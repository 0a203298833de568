package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		runServer()
		return
	}
	goleak.VerifyTestMain(testkit.Tidy(m))
}

func openTest(t *testing.T, dir string) (*Server, *nats.Conn, *KV) {
	t.Helper()
	srv, err := StartServer(ServerConfig{Dir: dir, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := srv.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Within(t)
	tables, err := Open(ctx, nc, 1)
	if err != nil {
		t.Fatal(err)
	}
	return srv, nc, tables
}

func actor(name, id string) gcs.ActorRecord {
	return gcs.ActorRecord{Namespace: "prod", Name: name, Actor: id, Type: "app/counter"}
}

func homeRecord(n ids.Home) gcs.HomeRecord {
	return gcs.HomeRecord{Row: register.Row{Home: n, Identity: "me", Epoch: 1}, Node: "n1"}
}

// What was acknowledged is there after a restart of the server.
func TestTablesKeepWhatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	srv, nc, tables := openTest(t, dir)
	rec := actor("hits", "a")
	if a := tables.Do(t.Context(), gcs.Write{ID: 1, Record: rec, Revision: 0}); a.Err != nil || a.Conflict {
		t.Fatalf("create: %+v", a)
	}
	nc.Close()
	srv.Close()
	srv, nc, tables = openTest(t, dir)
	defer srv.Close()
	defer nc.Close()
	a := tables.Do(t.Context(), gcs.Read{ID: 3, Bucket: gcs.Actors, Key: rec.Key()})
	if a.Err != nil || a.Record != gcs.Record(rec) {
		t.Fatalf("after a restart: %+v", a)
	}
}

// A table of an earlier release that nobody read is gone.
func TestUnreadTablesAreRemoved(t *testing.T) {
	srv, nc, _ := openTest(t, t.TempDir())
	defer srv.Close()
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: unread[0], Storage: jetstream.FileStorage, History: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), nc, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := js.KeyValue(t.Context(), unread[0]); !errors.Is(err, jetstream.ErrBucketNotFound) {
		t.Errorf("it is there still: %v", err)
	}
}

// silent is a server whose first answer is lost.
type silent struct {
	jetstream.JetStream
	asked int
}

func (s *silent) DeleteKeyValue(ctx context.Context, _ string) error {
	if s.asked++; s.asked == 1 {
		<-ctx.Done()
		return ctx.Err()
	}
	return jetstream.ErrBucketNotFound
}

// The removal of a table is asked for again where the answer was lost: it may have been removed.
func TestALostAnswerToARemovalIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		js := new(silent)
		if err := remove(ready, js, unread[0]); err != nil || js.asked != 2 {
			t.Errorf("asked %d times: %v", js.asked, err)
		}
	})
}

// A table of an earlier build whose rows are removed is empty in the end: removed rows are remembered only for some time.
func TestRemovedRowsAreForgotten(t *testing.T) {
	srv, nc, _ := openTest(t, t.TempDir())
	defer srv.Close()
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteKeyValue(t.Context(), "mobula_"+string(gcs.Homes)); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "mobula_" + string(gcs.Homes), Storage: jetstream.FileStorage, History: 1}); err != nil {
		t.Fatal(err)
	}
	tables, err := open(t.Context(), nc, 1, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	row := func(i int) gcs.HomeRecord { return homeRecord(ids.Home(i)) }
	const rows = 50
	for i := 1; i <= rows; i++ {
		if a := tables.Do(t.Context(), gcs.Write{ID: uint64(i), Record: row(i), Revision: -1}); a.Err != nil {
			t.Fatal(a.Err)
		}
		if a := tables.Do(t.Context(), gcs.Delete{ID: uint64(i), Bucket: gcs.Homes, Key: row(i).Key(), Revision: -1}); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if a := tables.Do(t.Context(), gcs.Write{Record: row(rows), Revision: 0}); a.Err != nil || a.Conflict { // made again meanwhile
		t.Fatalf("%+v", a)
	}
	kv, err := js.Stream(t.Context(), "KV_mobula_"+string(gcs.Homes))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "removed rows forgotten", func() bool {
		info, err := kv.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Msgs == 1
	})
	if a := tables.Do(t.Context(), gcs.Read{Bucket: gcs.Homes, Key: row(rows).Key()}); a.Err != nil || a.Record == nil {
		t.Errorf("the row that was made again: %+v", a)
	}
	if a := tables.Do(t.Context(), gcs.Write{Record: row(1), Revision: 0}); a.Err != nil || a.Conflict {
		t.Errorf("a row whose removal is forgotten: %+v", a)
	}
}

func TestServerOnAnUnusableDirectory(t *testing.T) {
	_, err := StartServer(ServerConfig{Dir: "/proc/nowhere", Name: "test", ReadyTimeout: 200 * time.Millisecond})
	if !errors.Is(err, errs.ErrComponentFailed) {
		t.Errorf("got %v", err)
	}
}

// In a bucket with replicas a write that meets another one under way is refused with an error of its own: it has lost too, and did not fail.
func TestALostCompareAndSetIsNoFailure(t *testing.T) {
	for _, c := range []struct {
		err  error
		lost bool
	}{
		{fmt.Errorf("%w: %w", &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}, jetstream.ErrKeyRevisionMismatch), true},
		{fmt.Errorf("%w: %w", &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant}, jetstream.ErrKeyRevisionMismatch), true},
		{fmt.Errorf("%w: %w", &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant}, jetstream.ErrKeyExists), true},
		{&jetstream.APIError{ErrorCode: jetstream.JSErrCodeJetStreamNotEnabled}, false},
	} {
		if a := conflict(gcs.Answered{}, c.err); a.Conflict != c.lost || (a.Err == nil) != c.lost {
			t.Errorf("%v is answered %+v", c.err, a)
		}
	}
}
