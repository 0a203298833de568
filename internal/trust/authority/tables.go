package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mobula/internal/errs"
)

// ErrConflict says that a row has another revision than the one that was to be replaced.
var ErrConflict = errors.New("authority: the row was changed meanwhile")

// Tables keeps the rows by compare-and-set: a bucket of the control plane. A read sees each write that was acknowledged before it, whichever
// server has made that.
type Tables interface {
	// Read gives a row and its revision; revision 0: there is none.
	Read(ctx context.Context, key string) (row []byte, revision uint64, err error)

	// Write replaces the row that has the revision, 0: creates it. ErrConflict if it has another one. After another error the row may be written.
	Write(ctx context.Context, key string, row []byte, revision uint64) error

	// Delete removes the row that has the revision, likewise.
	Delete(ctx context.Context, key string, revision uint64) error

	// Keys lists the keys that begin with a prefix, which ends with a dot.
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// BundleKey is the key of the one row that all nodes may read.
const BundleKey = "bundle"

// The keys of rows.
const (
	authorityKey  = "authority"
	gossipKey     = "gossip"
	tokenPrefix   = "token."
	revokedPrefix = "revoked."
)

// read gives a row; revision 0: there is none.
func read[R any](ctx context.Context, t Tables, key string) (row R, revision uint64, err error) {
	data, revision, err := t.Read(ctx, key)
	if err != nil || revision == 0 {
		return row, 0, err
	}
	if err := json.Unmarshal(data, &row); err != nil {
		return row, 0, errs.New(errs.CodeInvalid, "the row %s of the control plane is damaged: %v", key, err)
	}
	return row, revision, nil
}

// write writes a row.
func write[R any](ctx context.Context, t Tables, key string, row R, revision uint64) error {
	data, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("row %s: %w", key, err)
	}
	return t.Write(ctx, key, data, revision)
}

// update reads a row, changes it and writes it, again for as long as others change it meanwhile: each round that fails is one in which another server
// has succeeded. change gives the row to write, and an error that is passed on after the write.
func update[R comparable](ctx context.Context, t Tables, key string, change func(row R, exists bool) (R, error)) error {
	for ctx.Err() == nil {
		row, revision, err := read[R](ctx, t, key)
		if err != nil {
			return err
		}
		next, refused := change(row, revision != 0)
		if next == row {
			return refused
		}
		err = write(ctx, t, key, next, revision)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		return refused
	}
	return fmt.Errorf("row %s: %w", key, context.Cause(ctx))
}

// all gives the rows whose keys begin with a prefix, by key.
func all[R any](ctx context.Context, t Tables, prefix string) (map[string]R, error) {
	keys, err := t.Keys(ctx, prefix)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]R, len(keys))
	for _, key := range keys {
		row, revision, err := read[R](ctx, t, key)
		if err != nil {
			return nil, err
		}
		if revision != 0 {
			rows[key] = row
		}
	}
	return rows, nil
}
