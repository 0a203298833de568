package shell

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/safefs"
	"mobula/objectstore/index"
	"mobula/objectstore/segment"
)

// Memory is what a store keeps outside its core: a file for each job, and the index beside them.
type Memory struct {
	Index *index.Index
	// Kept says why the store has the size that it was left with, not the one that was asked for; nil: it has that.
	Kept error
	// Removed says what was wrong with what an earlier node left, where it had to go; nil: nothing had to.
	Removed error
	found   bool

	mu     sync.Mutex
	cfg    segment.Config                 // guarded by mu, of Path and Size; of a file, Path lacks the job
	files  map[ids.JobID]*segment.Segment // guarded by mu
	over   [64]ids.JobID                  // guarded by mu: the jobs whose files were dropped last; a driver may still be on its way to one
	overs  int                            // guarded by mu: how many there were
	closed bool                           // guarded by mu
}

// OpenMemory makes the index, or finds it and the files beside it that a killed node of the same path
// left. What is left keeps the size that it has where it could not all be kept at the one asked for; what is
// damaged is removed first, and what only the memory of another run of the machine held is forgotten. The files have the path, with the job and
// a random number behind it. An empty path means memory that goes with the process; whose it is does not matter then.
func OpenMemory(cfg segment.Config, o index.Owner) (*Memory, error) {
	if cfg.Size == 0 || cfg.Size > 1<<46 {
		return nil, errs.New(errs.CodeInvalid, "segment of %d bytes: give the store a limit between 1 and 2^46 bytes", cfg.Size)
	}
	o.Segment = cfg.Size
	if cfg.Path == "" {
		return openMemory(cfg, o)
	}
	m, err := openLeft(cfg, o)
	if err == nil || !errors.Is(err, errs.ErrInvalid) && !errors.Is(err, index.ErrCorrupt) {
		return m, err
	}
	removed := err
	if err := removeAll(cfg.Path); err != nil {
		return nil, errs.New(errs.CodeSegmentUnavailable, "remove what an earlier node left at %s: %v", cfg.Path, err)
	}
	if m, err = openMemory(cfg, o); err == nil {
		m.Removed = errors.Join(removed, m.Removed)
	}
	return m, err
}

// MemoryAt tells whether a node has left memory at a path.
func MemoryAt(path string) bool { return safefs.Exists(path + ".index") }

func openMemory(cfg segment.Config, o index.Owner) (*Memory, error) {
	m := &Memory{cfg: cfg, files: make(map[ids.JobID]*segment.Segment)}
	var err error
	if cfg.Path == "" {
		m.Index, err = index.NewMemfd(cfg.Size)
		return m, err
	}
	if m.Index, err = openIndex(cfg.Path+".index", o); err != nil {
		return nil, err
	}
	m.found = m.Index.Windows() > 0
	for _, p := range filesAt(cfg.Path) {
		job, ok := jobOfFile(cfg.Path, p)
		if !ok || m.files[job] != nil || !m.found { // no index names anything in it
			err = errors.Join(err, removeFile(p))
			continue
		}
		c := cfg
		c.Path = p
		s, e := segment.Open(c)
		switch {
		case errors.Is(e, errs.ErrInvalid) || errors.Is(e, errs.ErrPermission): // a process of the job's has done it; the other jobs keep theirs
			m.Removed = errors.Join(m.Removed, e)
			err = errors.Join(err, removeFile(p))
		case e != nil:
			return nil, errors.Join(e, m.Close(false))
		default:
			m.files[job] = s
		}
	}
	if err != nil {
		return nil, errors.Join(err, m.Close(false))
	}
	return m, nil
}

// Size is the store's limit, and the length of each file.
func (m *Memory) Size() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cfg.Size
}

// Found tells whether a node of this path was killed.
func (m *Memory) Found() bool { return m.found }

// Segment is a job's file, which is made if there is none. A job that is over gets none: its error is ErrOwnerDied.
func (m *Memory) Segment(job ids.JobID) (*segment.Segment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.files[job]; s != nil {
		return s, nil
	}
	switch {
	case m.closed:
		return nil, errs.New(errs.CodeShutdown, "the object store is closed")
	case slices.Contains(m.over[:], job) && job != 0:
		return nil, errs.New(errs.CodeOwnerDied, "job %v is over", job)
	}
	cfg := m.cfg
	if cfg.Path != "" {
		var r [8]byte
		_, _ = rand.Read(r[:]) // it never fails
		cfg.Path = jobPrefix(cfg.Path) + strconv.FormatUint(uint64(job), 10) + "-" + hex.EncodeToString(r[:])
	}
	s, err := segment.Open(cfg)
	if err != nil {
		return nil, err
	}
	m.files[job] = s
	return s, nil
}

// known is a job's file; nil: it has none.
func (m *Memory) known(job ids.JobID) *segment.Segment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[job]
}

// keep gives back what lies outside the ranges, of every job; with drop the files of those without any go.
func (m *Memory) keep(held map[ids.JobID][]segment.Range, drop bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var es []error
	for job, s := range m.files {
		es = append(es, s.PunchAllBut(held[job]))
		if drop && len(held[job]) == 0 {
			es = append(es, s.Close(true))
			delete(m.files, job)
		}
	}
	return errors.Join(es...)
}

// drop removes a job's file. Its memory goes at once, whoever has it mapped still.
func (m *Memory) drop(job ids.JobID) error {
	m.mu.Lock()
	s := m.files[job]
	delete(m.files, job)
	m.over[m.overs%len(m.over)] = job
	m.overs++
	m.mu.Unlock()
	if s == nil {
		return nil
	}
	return errors.Join(s.PunchAllBut(nil), s.Close(true))
}

// allow lets a job have a file again.
func (m *Memory) allow(job ids.JobID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, of := range m.over {
		if of == job {
			m.over[i] = 0
		}
	}
}

// resize changes the length of every file, which no other process may have mapped, and of those to come.
func (m *Memory) resize(size uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.files {
		if err := s.Resize(size); err != nil {
			return err
		}
	}
	m.cfg.Size = size
	return nil
}

// Blocks is the memory that all files take now, in bytes.
func (m *Memory) Blocks() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum uint64
	for _, s := range m.files {
		n, err := s.Blocks()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// Close closes everything; with remove nothing stays for a next node to find.
func (m *Memory) Close(remove bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	var es []error
	for job, s := range m.files {
		es = append(es, s.Close(remove))
		delete(m.files, job)
	}
	if remove && m.cfg.Path != "" {
		es = append(es, removeFile(m.cfg.Path+".index"))
	}
	return errors.Join(append(es, m.Index.Close())...)
}

func jobPrefix(path string) string { return path + ".job" }

// filesAt lists the files of jobs at a path, and the one that a release before had for all of them.
func filesAt(path string) []string {
	entries, err := safefs.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil // opening the index for good says so
	}
	base := filepath.Base(path)
	var found []string
	for _, e := range entries {
		if n := e.Name(); (n == base || strings.HasPrefix(n, jobPrefix(base))) && own(e) {
			found = append(found, filepath.Join(filepath.Dir(path), n))
		}
	}
	return found
}

// own tells whether a file is this user's: in a place that others share anybody may leave one.
func own(e os.DirEntry) bool {
	fi, err := e.Info()
	if err != nil || !fi.Mode().IsRegular() {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

func jobOfFile(path, file string) (ids.JobID, bool) {
	rest, ok := strings.CutPrefix(file, jobPrefix(path))
	number, _, dash := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	return ids.JobID(n), ok && dash && err == nil
}

// removeAll removes what a node has left: the index last, by which others find the rest.
func removeAll(path string) error {
	var err error
	for _, p := range filesAt(path) {
		err = errors.Join(err, removeFile(p))
	}
	if err != nil {
		return err
	}
	return removeFile(path + ".index")
}

func openIndex(path string, o index.Owner) (*index.Index, error) {
	f, err := safefs.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errs.New(errs.CodeSegmentUnavailable, "open index: %v", err)
	}
	if err := lockIndex(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return index.Open(f, o)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
