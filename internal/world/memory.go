package world

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
	"mobula/objectstore/record"
	"mobula/wire"
)

// page is the size of a page of memory.
const page = 4096

// memory is a node's segments, a file of the limit's size for each job, and its fallback files. A page has memory in one of the files at most.
type memory struct {
	n      *Node
	files  map[ids.JobID][]byte
	over   map[ids.JobID]bool // theirs were dropped: they get no others
	backed []ids.JobID        // by page: in whose file it has memory; 0: in none
	held   int                // pages that have
	cold   map[uint64]bool
	unkept map[*byte]bool // files, by their first byte, that went with a store which was not kept: processes may have them mapped still

	mapped   map[uint32]*mappedFile
	removed  map[uint32]*mappedFile // which processes may have mapped still
	lastFile uint32
	short    bool // a fault: no more can be had
}

// mappedFile is a fallback file.
type mappedFile struct {
	path string
	data []byte
}

func newMemory(n *Node) *memory {
	return &memory{
		n: n, files: make(map[ids.JobID][]byte), over: make(map[ids.JobID]bool), backed: make([]ids.JobID, n.w.cfg.Store/page), cold: make(map[uint64]bool), unkept: make(map[*byte]bool), mapped: make(map[uint32]*mappedFile), removed: make(map[uint32]*mappedFile),
	}
}

// file is a job's file, which is made if there is none.
func (m *memory) file(job ids.JobID) []byte {
	f := m.files[job]
	if f == nil {
		f = make([]byte, m.n.w.cfg.Store)
		m.files[job] = f
	}
	return f
}

// segment is a job's file for a client. A job that is over gets none.
func (m *memory) segment(job ids.JobID) ([]byte, *errs.Error) {
	if m.files[job] == nil && m.over[job] {
		return nil, errs.New(errs.CodeOwnerDied, "job %v is over", job)
	}
	return m.file(job), nil
}

// reserve puts memory behind a part of a job's file.
func (m *memory) reserve(job ids.JobID, r alloc.Range) {
	for p := r.Off / page; p*page < r.End(); p++ {
		switch m.backed[p] {
		case 0:
			m.backed[p] = job
			m.held++
		case job:
		default:
			m.n.w.fail("page %d gets memory in the file of job %v, and has it in that of job %v", p, job, m.backed[p])
		}
	}
	if uint64(m.held)*page > m.n.w.cfg.Store {
		m.n.w.fail("%d bytes have memory, of a limit of %d", m.held*page, m.n.w.cfg.Store)
	}
}

// punch gives back the memory behind a part of a job's file.
func (m *memory) punch(job ids.JobID, r alloc.Range) {
	for p := r.Off / page; p < r.End()/page; p++ {
		if m.backed[p] == job {
			m.backed[p] = 0
			m.held--
			clear(m.file(job)[p*page : (p+1)*page])
		}
	}
}

// drop removes a job's file.
func (m *memory) drop(job ids.JobID) {
	for p, of := range m.backed {
		if of == job {
			m.backed[p] = 0
			m.held--
		}
	}
	delete(m.files, job)
}

// keep gives back all that no record of the index names; in a new process the files of which it names nothing go.
func (m *memory) keep(entries []record.Entry, drop bool) {
	named := make(map[ids.JobID]bool)
	used := make([]ids.JobID, len(m.backed))
	for _, e := range entries {
		if e.File != 0 || e.Block.Size == 0 || !e.Resident && e.State != record.StateRestoring {
			continue
		}
		named[e.Job] = true
		for p := e.Block.Off / page; p*page < e.Block.End(); p++ {
			used[p] = e.Job
		}
	}
	for p, of := range m.backed {
		if of != 0 && used[p] != of {
			m.punch(of, alloc.Range{Off: uint64(p) * page, Size: page})
		}
	}
	for _, job := range m.left() {
		if drop && !named[job] {
			m.drop(job)
		}
	}
}

// at gives the bytes of an extent, as they lie in a job's file or in a fallback file.
func (m *memory) at(job ids.JobID, e wire.Extent) []byte {
	if e.File != 0 {
		f := cmp.Or(m.mapped[e.File], m.removed[e.File])
		if f == nil {
			m.n.w.fail("an extent lies in fallback file %d, which is not there", e.File)
		}
		return f.data[e.Off : e.Off+e.Size]
	}
	return m.file(job)[e.Off : e.Off+e.Size]
}

// touch is at of who relies on the memory being there.
func (m *memory) touch(job ids.JobID, e wire.Extent) []byte {
	if e.File == 0 {
		for p := e.Off / page; p*page < e.Off+e.Size; p++ {
			if m.backed[p] != job {
				m.n.w.fail("extent %+v of job %v: page %d has its memory in the file of job %v", e, job, p, m.backed[p])
			}
		}
	}
	return m.at(job, e)
}

// bring is what the writer of an extent does that was granted cold: its pages come as they are touched.
func (m *memory) bring(job ids.JobID, e wire.Extent) {
	if e.File == 0 && m.cold[e.Off] {
		m.reserve(job, alloc.Range{Off: e.Off, Size: e.Size})
	}
}

// newMapped makes a fallback file.
func (m *memory) newMapped(size uint64) (uint32, string) {
	m.lastFile++
	f := &mappedFile{path: "fallback/" + ids.JobID(m.lastFile).String(), data: make([]byte, size)}
	m.mapped[m.lastFile] = f
	return m.lastFile, f.path
}

func (m *memory) paths() map[uint32]string {
	out := make(map[uint32]string, len(m.mapped))
	for n, f := range m.mapped {
		out[n] = f.path
	}
	return out
}

// reopen keeps the fallback files that the index names, for a next process.
func (m *memory) reopen(entries []record.Entry) {
	named := make(map[uint32]bool)
	for _, e := range entries {
		named[e.File] = true
	}
	for n := range m.mapped {
		if !named[n] {
			m.remove(n)
		}
	}
}

// remove removes a fallback file. What a process has mapped it keeps.
func (m *memory) remove(file uint32) {
	m.removed[file] = m.mapped[file]
	delete(m.mapped, file)
}

func (m *memory) processLost() {
	clear(m.cold)
	clear(m.over)
}

// notKept is the end of the store's memory, but for what processes have mapped.
func (m *memory) notKept() {
	for _, f := range m.files {
		m.unkept[&f[0]] = true
	}
	for n := range m.mapped {
		m.remove(n)
	}
	clear(m.files)
	clear(m.backed)
	m.held = 0
}

// lose is the loss of the machine.
func (m *memory) lose() {
	clear(m.files)
	clear(m.backed)
	clear(m.mapped)
	clear(m.removed)
	m.held = 0
}

// left says what is there, for the end of a run.
func (m *memory) left() []ids.JobID { return slices.Sorted(maps.Keys(m.files)) }

// fill writes the bytes of a value: the value itself, and what follows from it.
func fill(b []byte, v uint64) {
	for x := v; len(b) >= 8; b, x = b[8:], x*0x9e3779b97f4a7c15+1 {
		binary.LittleEndian.PutUint64(b, x)
	}
}

// valueOf reads the value that bytes are of; ok: they are all its.
func valueOf(b []byte) (v uint64, ok bool) {
	if len(b) < 8 {
		return 0, false
	}
	v = binary.LittleEndian.Uint64(b)
	for x := v; len(b) >= 8; b, x = b[8:], x*0x9e3779b97f4a7c15+1 {
		if binary.LittleEndian.Uint64(b) != x {
			return v, false
		}
	}
	return v, true
}

// bytesOf are the bytes of a value.
func bytesOf(v uint64, size int) []byte {
	b := make([]byte, max(8, size&^7))
	fill(b, v)
	return b
}
