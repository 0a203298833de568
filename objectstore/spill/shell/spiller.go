package shell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/objectstore/spill"
	_ "mobula/objectstore/spill/disk" // file://
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// Spiller writes objects to its targets and reads them back. Its methods are safe for concurrent use.
type Spiller struct {
	cfg     Config
	bufs    *storage.Buffers
	log     *slog.Logger
	targets []*target
	places  map[uint16]uint16 // of targets by number; immutable once open
	own     *actors.System    // when Start was given no parent
	started bool              // Start was called

	io     context.Context // context of every transfer
	stopIO context.CancelFunc
	work   sync.WaitGroup // transfers, probes and callbacks

	mapping sync.Mutex // held while mapped files are made or orphans among them removed

	mu       sync.Mutex // guards the fields below; never held over I/O or a callback
	jobs     map[uint64]*job
	lastJob  uint64
	moving   int           // writes and reads among jobs
	idle     chan struct{} // closed when moving is 0; nil: nobody waits
	refs     *spill.Refs
	router   *spill.Router
	mapped   map[string]mappedFile
	stats    Stats
	limiter  limiter
	stopping int  // Recover or Close under way: refused jobs are not retried
	epoch    int  // counts calls of Recover
	closed   bool // for good
}

// target is one place to spill to.
type target struct {
	n       uint16 // place
	number  uint16 // in locations
	url     *url.URL
	storage storage.Storage
	ref     *actors.Ref[spill.Event]

	nextFile uint64         // guarded by Spiller.mu, like all fields below
	capacity spill.Capacity // last seen
	why      error          // why it is not healthy
}

const keepBuffers = 8 // idle, of 4 MiB each: two for each of the default writers

// Open opens every target, takes the session's lock in each and removes the files of dead sessions. If a target
// cannot be opened it gives an error, and nothing stays open. Nothing is written or read before Start.
func Open(cfg Config) (*Spiller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, errs.New(errs.CodeInvalid, "%v", err)
	}
	urls, err := cfg.targets()
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "%v", err)
	}
	s := &Spiller{
		cfg:     cfg,
		bufs:    storage.NewBuffers(keepBuffers),
		log:     cfg.Logger,
		jobs:    make(map[uint64]*job),
		refs:    spill.NewRefs(),
		router:  spill.NewRouter(len(urls), cfg.MinFileBytes),
		mapped:  make(map[string]mappedFile),
		limiter: limiter{every: cfg.LogEvery},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.io, s.stopIO = context.WithCancel(context.Background())
	for i, u := range urls {
		t := &target{n: uint16(i), url: u}
		if err := s.openStorage(t); err != nil {
			return nil, errors.Join(fmt.Errorf("spill target %s: %w", u.Redacted(), err), s.abandon())
		}
	}
	if err := s.number(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

// Start starts the actors spiller/N below a parent; nil: in a tree of their own. After an error the spiller can only be closed.
func (s *Spiller) Start(parent actors.Parent) error {
	s.started = true
	if parent == nil {
		s.own = actors.NewSystem(actors.Config{Logger: s.log})
		parent = s.own
	}
	for _, t := range s.targets {
		if err := s.spawn(parent, t); err != nil {
			return err
		}
	}
	return nil
}

// openStorage opens a target and finds the first free file number.
func (s *Spiller) openStorage(t *target) error {
	ctx, cancel := context.WithTimeout(s.io, s.cfg.IOTimeout)
	defer cancel()
	st, err := storage.Open(ctx, t.url, storage.Options{Session: s.cfg.Session, Node: s.cfg.Node, Restarts: s.cfg.Restarts, Buffers: s.bufs})
	if err != nil {
		return err
	}
	t.storage = st
	s.targets = append(s.targets, t)
	files, err := st.List(ctx)
	if err != nil {
		return err
	}
	for _, f := range files {
		t.nextFile = max(t.nextFile, f.Number+1)
	}
	return nil
}

// abandon undoes an Open that failed.
func (s *Spiller) abandon() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return s.shut(ctx, false)
}

// Write writes items, fused into one or a few files over all targets. done is called once, from another goroutine:
// with a location for each item, in order, or with an error, in which case nothing counts as written. The error
// matches errs.ErrOutOfDisk when every target refused, errs.ErrShutdown after Close, errs.ErrCancelled during
// Recover.
func (s *Spiller) Write(items []spill.Item, done func([]spill.Location, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(items, nil, &group{done: done})
}

// Copy writes objects anew that lie in spill storage, as Write does. They stay where they lie until they are removed. An error that matches
// spill.ErrCorrupt or spill.ErrMissing says that one of them is lost.
func (s *Spiller) Copy(objs []spill.Copy, done func([]spill.Location, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items, from, g := make([]spill.Item, len(objs)), make([]spill.Location, len(objs)), &group{done: done}
	for i, o := range objs {
		in, known := s.toIndex(o.From)
		if !known {
			err := fmt.Errorf("target number %d: %w: %w", o.From.Target, spill.ErrNoTarget, spill.ErrMissing)
			s.later(func() { done(nil, err) })
			return
		}
		from[i] = in
		items[i] = spill.Item{ID: o.ID, Attempt: o.Attempt, Copy: &format.Copy{Size: in.Size, CRC: in.CRC}}
	}
	s.write(items, from, g)
}

// write writes a group's items: of those that are copied, from has where they lie. s.mu is held.
func (s *Spiller) write(items []spill.Item, from []spill.Location, g *group) {
	var err error
	switch {
	case s.closed:
		err = s.goneError()
	case s.stopping > 0: // Recover would not know the file
		err = errSuperseded()
	}
	if err != nil || len(items) == 0 {
		s.later(func() { g.done(nil, err) })
		return
	}
	for _, l := range from {
		if s.refs.Hold(l.Key()) {
			g.holds = append(g.holds, l.Key())
		}
	}
	files := spill.Fuse(items, s.cfg.MinFileBytes, s.cfg.MaxFused)
	g.locs, g.left, g.epoch = make([]spill.Location, len(items)), len(files), s.epoch
	first := 0
	for _, f := range files {
		s.moving++
		j := &job{kind: spill.Write, size: spill.FileBytes(f), items: f, group: g, first: first}
		if from != nil {
			j.from = from[first : first+len(f)]
		}
		s.route(j)
		first += len(f)
	}
}

// Read fills dst, len(dst) == loc.Size, and checks it. done is called once, from another goroutine; until then dst
// belongs to the spiller. Errors match spill.ErrCorrupt or spill.ErrMissing if the bytes are lost; after any other
// a retry may succeed.
func (s *Spiller) Read(loc spill.Location, dst []byte, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	in, known := s.toIndex(loc)
	switch {
	case s.closed:
		err = s.goneError()
	case s.stopping > 0:
		err = errSuperseded()
	case !known:
		err = fmt.Errorf("target number %d: %w: %w", loc.Target, spill.ErrNoTarget, spill.ErrMissing)
	case uint64(len(dst)) != loc.Size:
		err = errs.New(errs.CodeInvalid, "reading an object of %d bytes into %d", loc.Size, len(dst))
	}
	if err != nil {
		s.later(func() { done(err) })
		return
	}
	s.moving++
	s.send(&job{kind: spill.Read, target: in.Target, loc: in, dst: dst, read: done, held: s.refs.Hold(in.Key())})
}

// Remove drops objects; a file is deleted with its last object. Unknown locations are ignored.
func (s *Spiller) Remove(locs []spill.Location) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, l := range locs {
		l, known := s.toIndex(l)
		if !known {
			continue
		}
		if last, _ := s.refs.Drop(l); last {
			s.deleteFile(l.Key())
		}
	}
}

func (s *Spiller) deleteFile(k spill.FileKey) {
	s.send(&job{kind: spill.Remove, target: k.Target, file: k.File})
}

func (s *Spiller) goneError() error {
	return errs.New(errs.CodeShutdown, "the spiller of session %s is closed", s.cfg.Session)
}

// later runs a callback on a goroutine of its own, never within the caller. s.mu is held.
func (s *Spiller) later(f func()) {
	if s.closed && s.moving == 0 {
		go f() // Close may be past waiting
		return
	}
	s.work.Go(f)
}

// stopTimeout bounds stops without a deadline.
const stopTimeout = 10 * time.Second
