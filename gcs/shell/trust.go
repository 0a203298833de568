package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mobula/gcs"
	"mobula/internal/trust/authority"
)

// Trust is the rows of the cluster's authority, in a bucket apart from the tables: a node that may read those need not read these.
type Trust struct {
	kv jetstream.KeyValue    // for writes
	js nats.JetStreamContext // for reads
}

// trustBucket is where they lie.
const trustBucket = "mobula_trust"

// The stream of the bucket, and the subject of a row, or of rows where the key is a pattern.
const trustStream = "KV_" + trustBucket

func trustSubject(key string) string { return "$KV." + trustBucket + "." + key }

// OpenTrust makes or finds the bucket, with that many replicas.
func OpenTrust(ctx context.Context, nc *nats.Conn, replicas int) (*Trust, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	kv, err := ensure(ctx, js, bucket(trustBucket, replicas, markerTTL))
	if err != nil {
		return nil, fmt.Errorf("table of the authority: %w", err)
	}
	return newTrust(kv, nc)
}

func newTrust(kv jetstream.KeyValue, nc *nats.Conn) (*Trust, error) {
	js, err := nc.JetStream()
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	return &Trust{kv, js}, nil
}

// Read implements authority.Tables.
func (t *Trust) Read(ctx context.Context, key string) (row []byte, revision uint64, err error) {
	err = insist(ctx, func(ctx context.Context) error {
		row, revision, err = t.read(ctx, key)
		return err
	})
	return row, revision, err
}

// read asks the leader: another replica may not have yet what was acknowledged, a token that was just made or a revocation.
func (t *Trust) read(ctx context.Context, key string) ([]byte, uint64, error) {
	msg, err := t.js.GetLastMsg(trustStream, trustSubject(key), nats.Context(ctx))
	switch {
	case errors.Is(err, nats.ErrMsgNotFound), err == nil && removal(msg.Header):
		return nil, 0, nil
	case err != nil:
		return nil, 0, away(err)
	}
	return msg.Data, msg.Sequence, nil
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

// Keys implements authority.Tables. A prefix ends with a dot. It asks the leader, too: a watch may be served by another replica.
func (t *Trust) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	var listed map[string]uint64
	err = insist(ctx, func(ctx context.Context) error {
		info, err := t.js.StreamInfo(trustStream, &nats.StreamInfoRequest{SubjectsFilter: trustSubject(prefix + ">")}, nats.Context(ctx))
		if err != nil {
			return away(err)
		}
		listed = info.State.Subjects
		return nil
	})
	for subject := range listed {
		key := strings.TrimPrefix(subject, trustSubject(""))
		_, revision, err := t.Read(ctx, key)
		if err != nil {
			return nil, err
		}
		if revision != 0 { // else it was removed
			keys = append(keys, key)
		}
	}
	return keys, err
}
