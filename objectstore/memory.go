package objectstore

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/safefs"
	"mobula/objectstore/index"
	"mobula/objectstore/segment"
)

// Mapping is a client's access to its job's file, and to those announced to it.
type Mapping = segment.Mapping

// OpenMapping maps the file that came with wire.Welcome, of SegmentSize bytes.
func OpenMapping(f *os.File, size uint64) (*Mapping, error) { return segment.OpenMapping(f, size) }

// Memory is what a store keeps outside its core: a file for each job, and the index beside them.
type Memory struct {
	Index *index.Index
	cfg   segment.Config
	found bool

	mu     sync.Mutex
	files  map[ids.JobID]*segment.Segment // guarded by mu
	closed bool                           // guarded by mu
}

// OpenMemory makes the index, or finds it and the files beside it that a killed node of the same path
// left; what it finds damaged, of another limit or of another release is removed first, and why says so. The files are at the path, with the
// job and a random number behind it. An empty path means memory that goes with the process.
func OpenMemory(cfg segment.Config) (m *Memory, why error, err error) {
	if cfg.Size == 0 || cfg.Size > 1<<46 {
		return nil, nil, errs.New(errs.CodeInvalid, "segment of %d bytes: give the store a limit between 1 and 2^46 bytes", cfg.Size)
	}
	if cfg.Path == "" {
		m, err = openMemory(cfg)
		return m, nil, err
	}
	m, err = openMemory(cfg)
	if err == nil || !errors.Is(err, errs.ErrInvalid) && !errors.Is(err, index.ErrCorrupt) {
		return m, nil, err
	}
	why = err
	if err := removeAll(cfg.Path); err != nil {
		return nil, nil, errs.New(errs.CodeSegmentUnavailable, "remove what an earlier node left at %s: %v", cfg.Path, err)
	}
	m, err = openMemory(cfg)
	return m, why, err
}

// MemoryAt tells whether a node has left memory at a path.
func MemoryAt(path string) bool {
	_, err := os.Stat(path + ".index")
	return err == nil
}

func openMemory(cfg segment.Config) (*Memory, error) {
	m := &Memory{cfg: cfg, files: make(map[ids.JobID]*segment.Segment)}
	var err error
	if cfg.Path == "" {
		m.Index, err = index.NewMemfd(cfg.Size)
		return m, err
	}
	if m.Index, err = openIndex(cfg.Path+".index", cfg.Size); err != nil {
		return nil, err
	}
	for _, p := range filesAt(cfg.Path) {
		job, ok := jobOfFile(cfg.Path, p)
		if !ok || m.files[job] != nil || m.Index.Windows() == 0 { // no index names anything in it
			err = errors.Join(err, removeFile(p))
			continue
		}
		c := cfg
		c.Path = p
		s, e := segment.Open(c)
		if e != nil {
			return nil, errors.Join(e, m.Close(false))
		}
		m.files[job] = s
	}
	m.found = m.Index.Windows() > 0
	if err != nil {
		return nil, errors.Join(err, m.Close(false))
	}
	return m, nil
}

// Size is the store's limit.
func (m *Memory) Size() uint64 { return m.cfg.Size }

// Found tells whether a node of this path was killed.
func (m *Memory) Found() bool { return m.found }

// Segment is a job's file, which is made if there is none.
func (m *Memory) Segment(job ids.JobID) (*segment.Segment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.files[job]; s != nil {
		return s, nil
	}
	if m.closed {
		return nil, errs.New(errs.CodeShutdown, "the object store is closed")
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

// has tells whether a job has a file.
func (m *Memory) has(job ids.JobID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[job] != nil
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
	m.mu.Unlock()
	if s == nil {
		return nil
	}
	return errors.Join(s.PunchAllBut(nil), s.Close(true))
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
	if remove && m.cfg.Path != "" {
		es = append(es, removeFile(m.cfg.Path+".index"))
	}
	for job, s := range m.files {
		es = append(es, s.Close(remove))
		delete(m.files, job)
	}
	return errors.Join(append(es, m.Index.Close())...)
}

func jobPrefix(path string) string { return path + ".job" }

// filesAt lists the files of jobs at a path, and the one that a release before had for all of them.
func filesAt(path string) []string {
	found, _ := filepath.Glob(escapeGlob(jobPrefix(path)) + "*") // the pattern is a good one
	if _, err := os.Lstat(path); err == nil {
		found = append(found, path)
	}
	return found
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

func jobOfFile(path, file string) (ids.JobID, bool) {
	rest, ok := strings.CutPrefix(file, jobPrefix(path))
	number, _, dash := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(number, 10, 32)
	return ids.JobID(n), ok && dash && err == nil
}

func removeAll(path string) error {
	err := removeFile(path + ".index")
	for _, p := range filesAt(path) {
		err = errors.Join(err, removeFile(p))
	}
	return err
}

func openIndex(path string, size uint64) (*index.Index, error) {
	f, err := safefs.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errs.New(errs.CodeSegmentUnavailable, "open index: %v", err)
	}
	return index.Open(f, size)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
