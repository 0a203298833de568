package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mobula/gcs"
)

// opTimeout bounds one call to the server. An embedded server answers in some 0.1 ms.
const opTimeout = 5 * time.Second

// markerTTL is how long a table remembers that a row was removed: watchers that were away for less learn of it. Without a bound, every
// removed row would stay in the server's memory and files.
const markerTTL = 5 * time.Minute

// Tables keeps the rows: in NATS (KV), or in this process (Memory). Within a table revisions grow with each write.
type Tables interface {
	// Watch calls changed for every row and then for every change, in order, from one goroutine for each table, until Close or the end of life. It
	// returns when changed was called for all rows, or fails if ready ends first. If a row changes faster than changed returns, all changes but the
	// last may be left out.
	Watch(life, ready context.Context, changed func(gcs.Changed)) error

	// Do makes one call, a Write, Delete or Read, and gives its answer.
	Do(ctx context.Context, e gcs.Effect) gcs.Answered

	// Close ends the watches; Watch may be called again.
	Close()
}

// KV is the tables as key-value buckets of a NATS server.
type KV struct {
	kv       map[gcs.Bucket]jetstream.KeyValue
	watchers []jetstream.KeyWatcher
	wg       sync.WaitGroup
	removed  time.Duration // how long a removed row is remembered
}

// unread are tables of earlier releases, which nobody reads.
var unread = []string{"mobula_jobs"}

// Open makes or finds the buckets, each on disk with that many replicas.
func Open(ctx context.Context, nc *nats.Conn, replicas int) (*KV, error) {
	return open(ctx, nc, replicas, markerTTL)
}

func open(ctx context.Context, nc *nats.Conn, replicas int, removed time.Duration) (*KV, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	t := &KV{kv: make(map[gcs.Bucket]jetstream.KeyValue), removed: removed}
	for _, b := range gcs.Buckets {
		kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: "mobula_" + string(b), Storage: jetstream.FileStorage, Replicas: replicas, History: 1, LimitMarkerTTL: removed,
		})
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", b, err)
		}
		t.kv[b] = kv
	}
	for _, bucket := range unread {
		if err := js.DeleteKeyValue(ctx, bucket); err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, fmt.Errorf("table %s, which is read no more: %w", bucket, err)
		}
	}
	return t, nil
}

// Watch implements Tables.
func (t *KV) Watch(life, ready context.Context, changed func(gcs.Changed)) error {
	for _, b := range gcs.Buckets {
		w, err := t.kv[b].WatchAll(life)
		if err != nil {
			return fmt.Errorf("watch table %s: %w", b, err)
		}
		t.watchers = append(t.watchers, w)
		initial := make(chan struct{})
		t.wg.Go(func() { follow(b, w.Updates(), changed, initial) })
		select {
		case <-initial:
		case <-ready.Done():
			return fmt.Errorf("watch table %s: %w", b, context.Cause(ready))
		}
	}
	return nil
}

// follow passes a table's changes on. A nil entry says that all present rows were passed on.
func follow(b gcs.Bucket, updates <-chan jetstream.KeyValueEntry, changed func(gcs.Changed), initial chan struct{}) {
	told := false
	for e := range updates {
		if e == nil {
			close(initial)
			told = true
			continue
		}
		ev := gcs.Changed{Bucket: b, Key: e.Key(), Revision: e.Revision()}
		if e.Operation() == jetstream.KeyValuePut {
			r, err := gcs.ParseRecord(b, e.Value())
			if err != nil {
				continue // a row of a later version that this one cannot read: do not show it
			}
			ev.Record = r
		}
		changed(ev)
	}
	if !told {
		close(initial)
	}
}

// Do implements Tables. It waits for the server, up to opTimeout.
func (t *KV) Do(ctx context.Context, e gcs.Effect) gcs.Answered {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	switch e := e.(type) {
	case gcs.Write:
		return t.write(ctx, e)
	case gcs.Delete:
		opts := []jetstream.KVDeleteOpt{jetstream.PurgeTTL(t.removed)}
		if e.Revision >= 0 {
			opts = append(opts, jetstream.LastRevision(uint64(e.Revision)))
		}
		return conflict(gcs.Answered{ID: e.ID, Wrote: true}, t.kv[e.Bucket].Purge(ctx, e.Key, opts...))
	case gcs.Read:
		return t.read(ctx, e)
	}
	return gcs.Answered{Err: fmt.Errorf("%T is no call to the server", e)}
}

func (t *KV) write(ctx context.Context, e gcs.Write) gcs.Answered {
	data, err := json.Marshal(e.Record)
	if err != nil {
		return gcs.Answered{ID: e.ID, Wrote: true, Err: err}
	}
	kv, key := t.kv[e.Record.Bucket()], e.Record.Key()
	a := gcs.Answered{ID: e.ID, Wrote: true}
	switch {
	case e.Revision < 0:
		a.Revision, err = kv.Put(ctx, key, data)
	case e.Revision == 0:
		a.Revision, err = kv.Create(ctx, key, data)
	default:
		a.Revision, err = kv.Update(ctx, key, data, uint64(e.Revision))
	}
	return conflict(a, err)
}

func (t *KV) read(ctx context.Context, e gcs.Read) gcs.Answered {
	entry, err := t.kv[e.Bucket].Get(ctx, e.Key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return gcs.Answered{ID: e.ID}
	}
	if err != nil {
		return gcs.Answered{ID: e.ID, Err: err}
	}
	r, err := gcs.ParseRecord(e.Bucket, entry.Value())
	return gcs.Answered{ID: e.ID, Record: r, Revision: entry.Revision(), Err: err}
}

// conflict distinguishes a lost compare-and-set from a failure.
func conflict(a gcs.Answered, err error) gcs.Answered {
	var api *jetstream.APIError
	switch {
	case err == nil:
	case errors.Is(err, jetstream.ErrKeyExists),
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		a.Conflict = true
	default:
		a.Err = err
	}
	return a
}

// Close implements Tables.
func (t *KV) Close() {
	for _, w := range t.watchers {
		_ = w.Stop() // the connection may be gone already, and the watch with it
	}
	t.watchers = nil
	t.wg.Wait()
}
