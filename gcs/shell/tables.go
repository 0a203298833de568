package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	js       nats.JetStreamContext
	kv       map[gcs.Bucket]jetstream.KeyValue
	removed  time.Duration // how long a removed row is remembered
	patient  bool          // a call waits for servers that do not answer
	bundle   bool          // the authority's table is there, and the trust bundle in it is watched too
	beats    bool          // the table of heartbeats is there, and is watched too
	watchers []*nats.Subscription
}

// unread are tables of earlier releases, which nobody reads.
var unread = []string{"mobula_jobs"}

// name is the name of a table's bucket.
func name(b gcs.Bucket) string { return "mobula_" + string(b) }

// bucket is how rows are kept.
func bucket(name string, replicas int, removed time.Duration) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{Bucket: name, Storage: jetstream.FileStorage, Replicas: replicas, History: 1, LimitMarkerTTL: removed}
}

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
	if t.js, err = nc.JetStream(); err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	for _, b := range gcs.Buckets {
		if t.kv[b], err = ensure(ctx, js, bucket(name(b), replicas, removed)); err != nil {
			return nil, fmt.Errorf("table %s: %w", b, err)
		}
	}
	for _, bucket := range unread {
		if err := remove(ctx, js, bucket); err != nil {
			return nil, fmt.Errorf("table %s, which is read no more: %w", bucket, err)
		}
	}
	return t, nil
}

// remove removes a bucket, if there is one. Like ensure it asks as long as servers do not answer.
func remove(ctx context.Context, js jetstream.JetStream, bucket string) error {
	return untilReady(ctx, func() error {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		if err := js.DeleteKeyValue(attempt, bucket); !errors.Is(err, jetstream.ErrBucketNotFound) {
			return err
		}
		return nil
	})
}

// ensure finds a bucket that is as it should be, or makes it so. It asks as long as servers do not answer: a set of them may have to elect a leader. One that is as
// it should be is not touched, since a set that lacks a server does not answer an update of a bucket of which that has a copy.
func ensure(ctx context.Context, js jetstream.JetStream, cfg jetstream.KeyValueConfig) (kv jetstream.KeyValue, err error) {
	var refused error
	err = untilReady(ctx, func() error {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		if kv, err = js.KeyValue(attempt, cfg.Bucket); errors.Is(err, jetstream.ErrBucketNotFound) {
			kv, err = js.CreateKeyValue(attempt, cfg)
		} else if err == nil {
			kv, err = updated(attempt, js, kv, cfg)
		}
		for _, final := range []error{jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount, jetstream.ErrLimitMarkerTTLNotSupported} {
			if errors.Is(err, final) {
				refused = err
				return nil
			}
		}
		return err
	})
	return kv, errors.Join(err, refused)
}

// updated gives a bucket as it should be.
func updated(ctx context.Context, js jetstream.JetStream, kv jetstream.KeyValue, cfg jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	s, err := kv.Status(ctx)
	if err != nil {
		return nil, err
	}
	if b, ok := s.(*jetstream.KeyValueBucketStatus); ok {
		if is := b.StreamInfo().Config; is.Replicas == cfg.Replicas && is.SubjectDeleteMarkerTTL == cfg.LimitMarkerTTL && is.MaxMsgsPerSubject == int64(cfg.History) {
			return kv, nil
		}
	}
	return js.UpdateKeyValue(ctx, cfg)
}

// Do implements Tables. It waits for the server, up to opTimeout, or, if it is patient, until a server answers.
func (t *KV) Do(ctx context.Context, e gcs.Effect) gcs.Answered {
	if t.patient {
		return persist(ctx, func(ctx context.Context) gcs.Answered { return t.do(ctx, e) })
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return t.do(ctx, e)
}

func (t *KV) do(ctx context.Context, e gcs.Effect) gcs.Answered {
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

// read asks the leader: another replica may not have yet what was acknowledged.
func (t *KV) read(ctx context.Context, e gcs.Read) gcs.Answered {
	msg, err := t.js.GetLastMsg(stream(e.Bucket), subject(e.Bucket, e.Key), nats.Context(ctx))
	switch {
	case errors.Is(err, nats.ErrMsgNotFound), err == nil && removal(msg.Header):
		return gcs.Answered{ID: e.ID}
	case err != nil:
		return gcs.Answered{ID: e.ID, Err: away(err)}
	}
	r, err := gcs.ParseRecord(e.Bucket, msg.Data)
	return gcs.Answered{ID: e.ID, Record: r, Revision: msg.Sequence, Err: err}
}

// conflict distinguishes a lost compare-and-set from a failure. A bucket with replicas has another error for it than one without.
func conflict(a gcs.Answered, err error) gcs.Answered {
	switch {
	case err == nil:
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		a.Conflict = true
	case errors.Is(err, jetstream.ErrInvalidKey):
		a.Err = err
	default:
		a.Err = away(err)
	}
	return a
}
