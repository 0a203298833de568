package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"mobula"
	"mobula/benchmarks/floor"
)

// The tasks of the sort: chunks are made, sorted and cut into one piece a range; ranges are merged and checked.
var (
	sortSplit  = mobula.RegisterN2("mobench/sort-split", splitChunk)
	sortMerge  = mobula.RegisterVar0("mobench/sort-merge", mergeRange)
	sortVerify = mobula.Register1("mobench/sort-verify", verifyRange)
)

// summary is what a sorted range holds.
type summary struct {
	Records     int64
	Sum         uint64 // of the records' numbers
	First, Last uint64 // key prefixes
}

// workspace is what a split sorts in.
type workspace struct {
	raw, sorted []byte
	sorter      floor.Sorter
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

const record = floor.RecordBytes

func keyOf(r []byte) uint64 { return binary.BigEndian.Uint64(r) }

// splitChunk makes n records from that number on; keys are uniform, so ranges are cut evenly.
func splitChunk(ctx context.Context, from, n int) ([][]byte, error) {
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	size := n * record
	if cap(w.raw) < size {
		w.raw, w.sorted = make([]byte, size), make([]byte, size)
	}
	raw, sorted := w.raw[:size], w.sorted[:size]
	floor.Generate(raw, int64(from))
	w.sorter.Sort(sorted, raw)
	rc, err := mobula.GetRuntimeContext(ctx)
	if err != nil {
		return nil, err
	}
	ranges := rc.Returns
	pieces := make([][]byte, ranges)
	at := 0
	for r := range pieces {
		end := at
		for end < size && rangeOf(keyOf(sorted[end:]), ranges) == r {
			end += record
		}
		if end > at {
			buf, err := mobula.CreateResult[byte](ctx, r, end-at)
			if err != nil {
				return nil, err
			}
			copy(buf.Slice(), sorted[at:end])
			pieces[r] = buf.Slice()
		}
		at = end
	}
	return pieces, nil
}

// rangeOf says which of the ranges a key lies in.
func rangeOf(key uint64, ranges int) int { return int(key >> 32 * uint64(ranges) >> 32) }

func mergeRange(ctx context.Context, pieces [][]byte) ([]byte, error) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	if size == 0 {
		return nil, nil
	}
	buf, err := mobula.CreateResult[byte](ctx, 0, size)
	if err != nil {
		return nil, err
	}
	merge(buf.Slice(), pieces)
	return buf.Slice(), nil
}

// merge puts the records of sorted runs into dst in order: a heap of the runs' heads.
func merge(dst []byte, runs [][]byte) {
	var heap []piece
	for _, r := range runs {
		if len(r) > 0 {
			heap = append(heap, piece{keyOf(r), r})
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		down(heap, i)
	}
	for len(heap) > 0 {
		top := &heap[0]
		copy(dst, top.rest[:record])
		dst = dst[record:]
		if top.rest = top.rest[record:]; len(top.rest) > 0 {
			top.key = keyOf(top.rest)
		} else {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		down(heap, 0)
	}
}

// piece is what is left of one, and its head's key.
type piece struct {
	key  uint64
	rest []byte
}

func (r *piece) before(o *piece) bool {
	return r.key < o.key || r.key == o.key && bytes.Compare(r.rest[:floor.KeyBytes], o.rest[:floor.KeyBytes]) < 0
}

// down moves the i-th head down to its place.
func down(heap []piece, i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(heap); c++ {
			if heap[c].before(&heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

func verifyRange(_ context.Context, data []byte) (summary, error) {
	var s summary
	for at := 0; at < len(data); at += record {
		r := data[at : at+record]
		if at > 0 && bytes.Compare(r[:floor.KeyBytes], data[at-record:at-record+floor.KeyBytes]) < 0 {
			return s, fmt.Errorf("record %d is out of order", at/record)
		}
		s.Records++
		s.Sum += binary.BigEndian.Uint64(r[10:])
	}
	if len(data) > 0 {
		s.First, s.Last = keyOf(data), keyOf(data[len(data)-record:])
	}
	return s, nil
}

// sortCase sorts several times what the store holds; the result stays there, or on disk.
func sortCase(ctx context.Context, b *bench) (_ *report, err error) {
	dir, remove, err := b.temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	records := b.sortBytes / record
	plain, err := floor.Sort(ctx, floor.Sorting{Dir: dir, Records: records, Memory: b.sortChunk, Direct: true, Output: true})
	if err != nil {
		return nil, err
	}
	var spilled int64
	s, err := b.measureFresh(ctx, setup{store: b.sortStore, spill: dir}, func(cl *cluster) (float64, error) {
		begun := time.Now()
		if err := sortAll(cl.ctx, cl, int(records), int(b.sortChunk/record)); err != nil {
			return 0, err
		}
		t := time.Since(begun).Seconds()
		st, err := cl.store(cl.ctx)
		spilled = max(spilled, int64(st.SpilledEver))
		return t, err
	})
	if err != nil {
		return nil, err
	}
	r := &report{unit: "s", samples: s, floor: plain[0].Total}
	r.add("floor_is", "two goroutines, files, no framework")
	r.add("data_mib", float64(b.sortBytes)/mib)
	r.add("store_mib", float64(b.sortStore)/mib)
	r.add("spilled_mib", float64(spilled)/mib)
	return r, nil
}

func sortAll(ctx context.Context, cl *cluster, records, perChunk int) error {
	chunks := (records + perChunk - 1) / perChunk
	ranges := chunks
	pieces := make([][]mobula.Ref[[]byte], ranges) // by range, then by chunk
	for c := range chunks {
		from := c * perChunk
		for r, p := range sortSplit.Go(ctx, ranges, mobula.V(from), mobula.V(min(perChunk, records-from))) {
			pieces[r] = append(pieces[r], p)
		}
	}
	out := make([]mobula.Ref[[]byte], ranges)
	checks := make([]mobula.Ref[summary], ranges)
	for r := range ranges {
		out[r] = sortMerge.Go(ctx, pieces[r])
		for _, p := range pieces[r] {
			p.Release() // the merge holds it as long as it is needed
		}
		checks[r] = sortVerify.Go(ctx, out[r])
	}
	cl.did(chunks + 2*ranges)
	var n int64
	var sum, last uint64
	for r, c := range checks {
		s, err := c.Get(ctx)
		if err != nil {
			return fmt.Errorf("range %d: %w", r, err)
		}
		if s.Records > 0 && s.First < last {
			return fmt.Errorf("range %d begins before the one before it ends", r)
		}
		n, sum, last = n+s.Records, sum+s.Sum, max(last, s.Last)
	}
	if want := uint64(records) * uint64(records-1) / 2; n != int64(records) || sum != want {
		return fmt.Errorf("%d records with sum %d came out, want %d with %d", n, sum, records, want)
	}
	for _, o := range out {
		o.Release()
	}
	return nil
}
