package gcs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openTest(t *testing.T, dir string) (*Server, *nats.Conn, *Tables) {
	t.Helper()
	srv, err := StartServer(ServerConfig{Dir: dir, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := srv.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tables, err := Open(ctx, nc, 1)
	if err != nil {
		t.Fatal(err)
	}
	return srv, nc, tables
}

func TestTablesKeepWhatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	srv, nc, tables := openTest(t, dir)
	rec := actor("hits", "a")
	if a := tables.Do(t.Context(), Write{ID: 1, Record: rec, Revision: 0}); a.Err != nil || a.Conflict {
		t.Fatalf("create: %+v", a)
	}
	if a := tables.Do(t.Context(), Write{ID: 2, Record: rec, Revision: 0}); !a.Conflict {
		t.Errorf("a second create did not conflict: %+v", a)
	}
	nc.Close()
	srv.Close()

	srv, nc, tables = openTest(t, dir)
	defer srv.Close()
	defer nc.Close()
	a := tables.Do(t.Context(), Read{ID: 3, Bucket: Actors, Key: rec.Key()})
	if a.Err != nil || a.Record != Record(rec) {
		t.Fatalf("after a restart: %+v", a)
	}
	if b := tables.Do(t.Context(), Write{ID: 4, Record: rec, Revision: int64(a.Revision) + 7}); !b.Conflict {
		t.Errorf("a write with a stale revision did not conflict: %+v", b)
	}
	if b := tables.Do(t.Context(), Delete{ID: 5, Bucket: Actors, Key: rec.Key(), Revision: int64(a.Revision)}); b.Err != nil || b.Conflict {
		t.Errorf("delete: %+v", b)
	}
	if b := tables.Do(t.Context(), Write{ID: 6, Record: rec, Revision: 0}); b.Err != nil || b.Conflict {
		t.Errorf("create after delete: %+v", b)
	}
}

func TestWatchTellsWhatIsThereAndWhatComes(t *testing.T) {
	srv, nc, tables := openTest(t, t.TempDir())
	defer srv.Close()
	defer nc.Close()
	tables.Do(t.Context(), Write{Record: JobRecord{Job: 1}, Revision: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got := make(chan Changed, 16)
	if err := tables.Watch(ctx, ctx, func(c Changed) { got <- c }); err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	if c := <-got; c.Record != Record(JobRecord{Job: 1}) {
		t.Errorf("first told %+v", c)
	}
	tables.Do(t.Context(), Delete{Bucket: Jobs, Key: "1", Revision: -1})
	select {
	case c := <-got:
		if c.Record != nil || c.Key != "1" {
			t.Errorf("told %+v of a deletion", c)
		}
	case <-ctx.Done():
		t.Fatal("a deletion was not told")
	}
}

// A table that an earlier build made, whose rows are removed, is empty in the end: what was removed is remembered for a while only.
func TestRemovedRowsAreForgotten(t *testing.T) {
	srv, nc, _ := openTest(t, t.TempDir())
	defer srv.Close()
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteKeyValue(t.Context(), "mobula_"+string(Jobs)); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "mobula_" + string(Jobs), Storage: jetstream.FileStorage, History: 1}); err != nil {
		t.Fatal(err)
	}
	tables, err := open(t.Context(), nc, 1, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	job := func(i int) JobRecord { return JobRecord{Job: ids.JobID(i)} }
	const jobs = 50
	for i := 1; i <= jobs; i++ {
		if a := tables.Do(t.Context(), Write{ID: uint64(i), Record: job(i), Revision: -1}); a.Err != nil {
			t.Fatal(a.Err)
		}
		if a := tables.Do(t.Context(), Delete{ID: uint64(i), Bucket: Jobs, Key: job(i).Key(), Revision: -1}); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if a := tables.Do(t.Context(), Write{Record: job(jobs), Revision: 0}); a.Err != nil || a.Conflict { // made again meanwhile
		t.Fatalf("%+v", a)
	}
	kv, err := js.Stream(t.Context(), "KV_mobula_"+string(Jobs))
	if err != nil {
		t.Fatal(err)
	}
	for {
		info, err := kv.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.State.Msgs == 1 {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("removed rows are remembered still")
		}
	}
	if a := tables.Do(t.Context(), Read{Bucket: Jobs, Key: job(jobs).Key()}); a.Err != nil || a.Record == nil {
		t.Errorf("the row that was made again: %+v", a)
	}
	if a := tables.Do(t.Context(), Write{Record: job(1), Revision: 0}); a.Err != nil || a.Conflict {
		t.Errorf("a row whose removal is forgotten: %+v", a)
	}
}

func TestServerOnAnUnusableDirectory(t *testing.T) {
	_, err := StartServer(ServerConfig{Dir: "/proc/nowhere", Name: "test", ReadyTimeout: 200 * time.Millisecond})
	if !errors.Is(err, errs.ErrComponentFailed) {
		t.Errorf("got %v", err)
	}
}
