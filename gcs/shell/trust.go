package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mobula/gcs"
	"mobula/internal/trust/authority"
)

// Trust is the rows of the cluster's authority, in a bucket apart from the tables: a node that may read those need not read these.
type Trust struct{ kv jetstream.KeyValue }

// trustBucket is where they lie.
const trustBucket = "mobula_trust"

// OpenTrust makes or finds the bucket, with that many replicas.
func OpenTrust(ctx context.Context, nc *nats.Conn, replicas int) (*Trust, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	kv, err := js.CreateOrUpdateKeyValue(ctx, bucket(trustBucket, replicas, markerTTL))
	if err != nil {
		return nil, fmt.Errorf("table of the authority: %w", err)
	}
	return &Trust{kv}, nil
}

// Read implements authority.Tables.
func (t *Trust) Read(ctx context.Context, key string) (row []byte, revision uint64, err error) {
	err = insist(ctx, func(ctx context.Context) error {
		row, revision, err = t.read(ctx, key)
		return err
	})
	return row, revision, err
}

func (t *Trust) read(ctx context.Context, key string) ([]byte, uint64, error) {
	entry, err := t.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, replaced(err)
	}
	return entry.Value(), entry.Revision(), nil
}

// Write implements authority.Tables. A write without an answer is made again, and may meet itself as a conflict: then the row is looked at.
func (t *Trust) Write(ctx context.Context, key string, row []byte, revision uint64) error {
	attempts := 0
	err := insist(ctx, func(ctx context.Context) (err error) {
		attempts++
		if revision == 0 {
			_, err = t.kv.Create(ctx, key, row)
		} else {
			_, err = t.kv.Update(ctx, key, row, revision)
		}
		return replaced(err)
	})
	if attempts > 1 && errors.Is(err, authority.ErrConflict) {
		if now, _, readErr := t.Read(ctx, key); readErr == nil && bytes.Equal(now, row) {
			return nil
		}
	}
	return err
}

// Delete implements authority.Tables.
func (t *Trust) Delete(ctx context.Context, key string, revision uint64) error {
	return insist(ctx, func(ctx context.Context) error {
		return replaced(t.kv.Purge(ctx, key, jetstream.LastRevision(revision), jetstream.PurgeTTL(markerTTL)))
	})
}

// replaced is the error of a call in the words of the authority.
func replaced(err error) error {
	a := conflict(gcs.Answered{}, err)
	if a.Conflict {
		return fmt.Errorf("%w: %w", authority.ErrConflict, err)
	}
	return a.Err
}

// Keys implements authority.Tables. A prefix ends with a dot.
func (t *Trust) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	err = insist(ctx, func(ctx context.Context) error {
		l, err := t.kv.ListKeysFiltered(ctx, prefix+">")
		if err != nil {
			return replaced(err)
		}
		keys = nil
		for key := range l.Keys() {
			keys = append(keys, key)
		}
		if err := ctx.Err(); err != nil { // it would have cut the list short
			return away(err)
		}
		return nil
	})
	return keys, err
}
