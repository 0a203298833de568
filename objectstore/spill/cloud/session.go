package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"mobula/internal/pidfd"
	"mobula/objectstore/spill/storage"
)

const (
	prefix   = "mobula-"
	ownerKey = "owner"
	keepFor  = 24 * time.Hour // a session that may be started again
	maxOwner = 4 << 10
)

// owner says which process a session belongs to.
type owner struct {
	Boot     string    `json:"boot"` // of the machine
	PIDs     string    `json:"pids"` // the pid namespace
	PID      int       `json:"pid"`
	Start    string    `json:"start"` // of the process, in ticks since boot
	Restarts bool      `json:"restarts"`
	Opened   time.Time `json:"opened"`
}

func self() owner {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	pids, _ := os.Readlink("/proc/self/ns/pid")
	return owner{
		Boot: strings.TrimSpace(string(boot)), PIDs: pids, PID: os.Getpid(), Start: startOf(os.Getpid()), Opened: time.Now(),
	}
}

// startOf is when a process began, which tells it from a later one of the same number; empty where that cannot be told.
func startOf(pid int) string {
	ticks, _ := pidfd.Start(pid)
	if ticks == 0 {
		return ""
	}
	return strconv.FormatUint(ticks, 10)
}

// local tells whether the owner's process numbers are this process's too.
func (o owner) local() bool {
	me := self()
	return o.Boot != "" && o.Boot == me.Boot && o.PIDs == me.PIDs
}

// alive tells whether an owner of this machine runs.
func (o owner) alive() bool {
	start, err := strconv.ParseUint(o.Start, 10, 64)
	if err != nil { // it could not tell
		return !pidfd.Gone(o.PID)
	}
	return pidfd.Same(o.PID, start)
}

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
func (s *Store) acquire(ctx context.Context, restarts bool) error {
	o, err := s.readOwner(ctx, s.prefix)
	switch {
	case err == nil && o.local() && o.alive():
		return fmt.Errorf("session %s belongs to process %d: %w", s.session, o.PID, storage.ErrInUse)
	case err != nil && gcerrors.Code(err) != gcerrors.NotFound && !isJSON(err):
		return typed(err, "open spill session", storage.ErrGone)
	}
	me := self()
	me.Restarts = restarts
	p, err := json.Marshal(me)
	if err != nil {
		return fmt.Errorf("encode owner: %w", err)
	}
	return typed(s.bucket.WriteAll(ctx, s.prefix+ownerKey, p, nil), "open spill session", storage.ErrGone)
}

func isJSON(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}

// sweep deletes the sessions of this machine whose process is gone. It is no error if it cannot:
// they are not this session's.
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
		if err == nil && o.local() && !o.alive() && !awaited {
			_ = s.removeAll(ctx, d.Key)
		}
	}
}

// removeAll deletes a session, its owner last.
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
		err = s.dropOwner(ctx, s.prefix)
	}
	if s.closing {
		err = errors.Join(err, s.bucket.Close())
	}
	return err
}
