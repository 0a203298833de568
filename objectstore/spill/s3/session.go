package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"mobula/objectstore/spill/storage"
)

const (
	prefix   = "mobula-"
	ownerKey = "owner"
	keepFor  = 24 * time.Hour // a session that may be started again
	maxOwner = 4 << 10
)

type owner = storage.Owner

func (s *Store) readOwner(ctx context.Context, prefix string) (owner, error) {
	var o owner
	r, err := s.bucket.NewRangeReader(ctx, prefix+ownerKey, 0, maxOwner, nil)
	if err != nil {
		return o, err
	}
	p, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err == nil {
		err = json.Unmarshal(p, &o)
	}
	return o, err
}

// acquire enters this process as the session's owner.
func (s *Store) acquire(ctx context.Context, by storage.Options) error {
	o, err := s.readOwner(ctx, s.prefix)
	s.owner = storage.Self(by)
	switch {
	case err == nil:
		if err := o.Foreign(by); err != nil {
			return err
		}
		if o.Local() && o.Alive() {
			return fmt.Errorf("session %s belongs to process %d: %w", s.session, o.PID, storage.ErrInUse)
		}
		s.owner.Number = o.Number
	case gcerrors.Code(err) != gcerrors.NotFound && !isJSON(err):
		return typed(err, "open spill session", storage.ErrGone)
	}
	return s.writeOwner(ctx)
}

func (s *Store) writeOwner(ctx context.Context) error {
	return typed(s.bucket.WriteAll(ctx, s.prefix+ownerKey, s.owner.Encode(), nil), "open spill session", storage.ErrGone)
}

// Number is the target's number, if the session has one.
func (s *Store) Number() (uint16, bool) {
	if s.owner.Number == nil {
		return 0, false
	}
	return *s.owner.Number, true
}

// SetNumber keeps the target's number in the session.
func (s *Store) SetNumber(n uint16) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	s.owner.Number = &n
	return s.writeOwner(ctx)
}

func isJSON(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}

// sweep deletes the sessions of this machine whose process is gone. It ignores failures, since these are other
// sessions.
func (s *Store) sweep(ctx context.Context) {
	for it := s.bucket.List(&blob.ListOptions{Prefix: s.base + prefix, Delimiter: "/"}); ; {
		d, err := it.Next(ctx)
		if err != nil {
			return
		}
		if !d.IsDir || d.Key == s.prefix {
			continue
		}
		o, err := s.readOwner(ctx, d.Key)
		awaited := o.Restarts && time.Since(o.Opened) < keepFor
		if err == nil && o.Local() && !o.Alive() && !awaited {
			_ = s.removeAll(ctx, d.Key)
		}
	}
}

// removeAll deletes a session, the key owner last.
func (s *Store) removeAll(ctx context.Context, prefix string) error {
	for it := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return typed(err, "list spill files", storage.ErrGone)
		}
		if o.Key == prefix+ownerKey {
			continue
		}
		if err := s.bucket.Delete(ctx, o.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return typed(err, "delete spill file", storage.ErrGone)
		}
	}
	return s.dropOwner(ctx, prefix)
}

func (s *Store) dropOwner(ctx context.Context, prefix string) error {
	if err := s.bucket.Delete(ctx, prefix+ownerKey); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return typed(err, "close spill session", storage.ErrGone)
	}
	return nil
}

// closeTimeout bounds the deletions of Close.
const closeTimeout = 30 * time.Second

// Close implements storage.Storage.
func (s *Store) Close(remove bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var err error
	if remove {
		err = s.removeAll(ctx, s.prefix)
	} else {
		s.owner.PID, s.owner.Opened = 0, time.Now()
		err = s.writeOwner(ctx)
	}
	if s.closing {
		err = errors.Join(err, s.bucket.Close())
	}
	return err
}
