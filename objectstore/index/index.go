package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/objectstore/record"
)

// ErrCorrupt is wrapped when a file is not an index of this segment.
var ErrCorrupt = errors.New("not an index of this segment")

const (
	headerSize  = 4096
	windowSize  = 1 << 20
	windowHead  = 64
	slotsPerWin = (windowSize - windowHead) / slotSize
	pageSize    = 4096
	pagesPerWin = (windowSize - windowHead) / pageSize
	magic       = "MOBULAIX"
	version     = 3
	shortIDs    = 2 // the previous version, whose records had ids of 16 bytes

	kindRecords  = 1
	kindOverflow = 2
)

// Index is an open index file.
type Index struct {
	file    *os.File
	windows [][]byte // mapped, in the order of the file
	records [][]byte // the windows of slots, in order
	over    [][]byte // the windows of overflow pages, in order
	slots   []slotState
	pages   []uint32 // free overflow pages
	torn    int
	forgot  int
}

// slotState is what the index keeps of a slot in memory.
type slotState struct {
	gen  uint32
	half uint8 // the current one
	last half  // its payload fields; rec is not kept
}

// Open opens the index in f, which it owns from now on, or makes one in an empty file. The segment's size
// distinguishes its index from another's. After a reboot of the machine Open drops what the index says of memory.
func Open(f *os.File, o Owner) (*Index, error) {
	x := &Index{file: f}
	if err := x.open(o); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// NewMemfd makes an index that lives as long as the process.
func NewMemfd(segment uint64) (*Index, error) {
	fd, err := unix.MemfdCreate("mobula-index", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, errs.New(errs.CodeSegmentUnavailable, "memfd_create for the index: %v", err)
	}
	return Open(os.NewFile(uintptr(fd), "memfd:mobula-index"), Owner{Segment: segment})
}

func (x *Index) open(o Owner) error {
	st, err := x.file.Stat()
	if err != nil {
		return fmt.Errorf("stat index: %w", err)
	}
	size := st.Size()
	if size < headerSize { // new, or the writer died before the header was complete
		return x.create(o)
	}
	was, err := ReadOwner(x.file)
	if err != nil {
		return err
	}
	if was.Node != "" && was.Node != o.Node {
		return fmt.Errorf("index of node %s, not %s: %w", was.Node, o.Node, ErrForeign)
	}
	if was.Segment != o.Segment {
		return fmt.Errorf("index of a segment of %d bytes, not %d: %w", was.Segment, o.Segment, ErrCorrupt)
	}
	for off := int64(headerSize); off+windowSize <= size; off += windowSize {
		if err := x.mapWindow(off); err != nil {
			return err
		}
	}
	if was == o {
		return nil
	}
	if was.shortIDs { // done before the first half that release 0.4 would misread, so that it no longer reads the index
		if err := x.writeHeader(was); err != nil {
			return err
		}
	}
	if was.Boot != o.Boot && (was.Boot != "" || !inMemory(x.file)) {
		if err := x.forget(); err != nil {
			return err
		}
	}
	return x.writeHeader(o) // last: if the process is killed before, the next open drops the records again
}

func (x *Index) create(o Owner) error {
	if err := x.file.Truncate(0); err != nil {
		return fmt.Errorf("truncate index: %w", err)
	}
	return x.writeHeader(o)
}

func (x *Index) mapWindow(off int64) error {
	w, err := unix.Mmap(int(x.file.Fd()), off, windowSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return errs.New(errs.CodeSegmentUnavailable, "map index window: %v", err)
	}
	x.windows = append(x.windows, w)
	x.classify(w)
	return nil
}

// classify files a window by its kind; one without a kind was never completed and stays unused.
func (x *Index) classify(w []byte) {
	switch windowKind(w) {
	case kindRecords:
		x.records = append(x.records, w)
	case kindOverflow:
		x.over = append(x.over, w)
	}
}

func windowKind(w []byte) byte {
	if binary.LittleEndian.Uint32(w) != crc32.Checksum(w[4:windowHead], castagnoli) {
		return 0
	}
	return w[4]
}

// grow adds a window. Its memory is allocated before its first byte is touched.
func (x *Index) grow(kind byte) error {
	off := int64(headerSize + len(x.windows)*windowSize)
	if err := unix.Fallocate(int(x.file.Fd()), 0, off, windowSize); err != nil {
		return errs.New(errs.CodeSegmentUnavailable, "index cannot grow by %d bytes: %v", windowSize, err)
	}
	w, err := unix.Mmap(int(x.file.Fd()), off, windowSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return errs.New(errs.CodeSegmentUnavailable, "map index window: %v", err)
	}
	w[4] = kind
	binary.LittleEndian.PutUint32(w, crc32.Checksum(w[4:windowHead], castagnoli))
	x.windows = append(x.windows, w)
	x.classify(w)
	if kind == kindOverflow {
		base := uint32(len(x.over)-1) * pagesPerWin
		for i := uint32(pagesPerWin); i > 0; i-- {
			x.pages = append(x.pages, base+i-1)
		}
	}
	return nil
}

// Write makes r the content of a slot. Slots are numbered from 0; the caller chooses, densely.
// An error leaves the slot as it was.
func (x *Index) Write(slot uint32, r *record.Record) error {
	for int(slot) >= len(x.records)*slotsPerWin {
		if err := x.grow(kindRecords); err != nil {
			return err
		}
	}
	for int(slot) >= len(x.slots) {
		x.slots = append(x.slots, slotState{})
	}
	s := &x.slots[slot]
	h := s.last
	old := uint32(0)
	if r.Payload != nil || r.Path != "" || r.State == record.StateFree {
		pay := r.Payload
		if pay == nil && r.State != record.StateFree {
			pay = x.payload(&h)[h.pathLen:]
		}
		old = h.payHead
		if err := x.putPayload(&h, r.Path, pay); err != nil {
			return err
		}
	}
	h.gen, h.rec = s.gen+1, *r
	s.half ^= 1
	h.encode(x.half(slot, s.half))
	s.gen = h.gen
	h.rec = record.Record{}
	s.last = h
	x.freePages(old)
	return nil
}

// Clear frees a slot.
func (x *Index) Clear(slot uint32) error {
	if int(slot) >= len(x.slots) {
		return nil
	}
	return x.Write(slot, &record.Record{State: record.StateFree})
}

func (x *Index) half(slot uint32, which uint8) []byte {
	w := x.records[slot/slotsPerWin]
	off := windowHead + int(slot%slotsPerWin)*slotSize + int(which)*halfSize
	return w[off : off+halfSize]
}

// Forgotten counts the records that were dropped when the index was opened after a reboot: those of clients, and of objects
// without a known spilled copy.
func (x *Index) Forgotten() int { return x.forgot }

// Torn counts the halves and payloads that Replay found damaged.
func (x *Index) Torn() int { return x.torn }

// File is the index's file.
func (x *Index) File() *os.File { return x.file }

// Close unmaps and closes the file, which stays.
func (x *Index) Close() error {
	var es []error
	for _, w := range x.windows {
		es = append(es, unix.Munmap(w))
	}
	x.windows, x.records, x.over = nil, nil, nil
	return errors.Join(append(es, x.file.Close())...)
}

// Bytes is the memory, or the disk space, that the file takes, without the header page if nothing was ever written.
func (x *Index) Bytes() uint64 {
	if len(x.windows) == 0 {
		return 0
	}
	return headerSize + uint64(len(x.windows))*windowSize
}

// Soon is Bytes, plus a window for each kind of which less than a quarter is free.
func (x *Index) Soon() uint64 {
	n := x.Bytes()
	if len(x.records) > 0 && len(x.records)*slotsPerWin-len(x.slots) < slotsPerWin/4 {
		n += windowSize
	}
	if len(x.over) > 0 && len(x.pages) < pagesPerWin/4 {
		n += windowSize
	}
	return n
}

// Windows counts the windows of the file: none has ever been written to a new one.
func (x *Index) Windows() int { return len(x.windows) }
