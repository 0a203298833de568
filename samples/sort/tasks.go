package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"mobula"
)

// retries of a task whose worker dies: more than the default, so that you can kill workers of the demo.
const retries = mobula.Retries(20)

// The tasks. The slices that they get lie in shared memory. The slices that they return do too: they are written
// in place.
var (
	Sample   = mobula.Register2("sort/sample", sampleTask, retries)
	Split    = mobula.RegisterN3("sort/split", splitTask, retries)
	Merge    = mobula.RegisterVarN1("sort/merge", mergeTask, retries)
	Assemble = mobula.Register1("sort/assemble", assembleTask, retries)
	Verify   = mobula.RegisterVar0("sort/verify", verifyTask, retries)
)

// sampleTask gives the keys of n records evenly spread over all.
func sampleTask(_ context.Context, records, n int) ([]Key, error) {
	n = min(n, records)
	keys := make([]Key, n)
	var r [recordSize]byte
	for i := range keys {
		generate(r[:], i*records/n)
		keys[i] = keyOf(r[:])
	}
	return keys, nil
}

// splitTask makes a chunk of n records, sorts it and cuts it at the splitters. Its last result is a trailer. The
// chunk itself is in the store only while the task needs it.
func splitTask(ctx context.Context, first, n int, splitters []Key) ([][]byte, error) {
	in, err := mobula.Create[byte](ctx, n*recordSize)
	if err != nil {
		return nil, err
	}
	defer in.Abort()
	data := in.Slice()
	generate(data, first) // another program would read a file here
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	index := s.index(data)
	record := func(i int) []byte { return data[int(index[i].at)*recordSize:][:recordSize] }
	cuts := append(cut(n, record, splitters), n)
	pieces := make([][]byte, len(cuts)+1)
	t := trailer{Sum: checksum(data)}
	from := 0
	for i, to := range cuts {
		t.Counts = append(t.Counts, uint32(to-from))
		if to > from {
			buf, err := mobula.CreateResult[byte](ctx, i, (to-from)*recordSize)
			if err != nil {
				return nil, err
			}
			pieces[i] = buf.Slice()
			for k := from; k < to; k++ {
				copy(pieces[i][(k-from)*recordSize:][:recordSize], record(k))
			}
		}
		from = to
	}
	pieces[len(cuts)] = t.encode()
	return pieces, nil
}

// trailer describes the pieces of a split.
type trailer struct {
	Sum    uint64   // checksum of all records
	Counts []uint32 // records of each piece
}

func (t trailer) encode() []byte {
	out := binary.LittleEndian.AppendUint64(nil, t.Sum)
	for _, n := range t.Counts {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	return out
}

func decodeTrailer(b []byte, pieces int) (t trailer, err error) {
	if len(b) != 8+4*pieces {
		return t, fmt.Errorf("a trailer of %d bytes for %d pieces", len(b), pieces)
	}
	t.Sum = binary.LittleEndian.Uint64(b)
	for b = b[8:]; len(b) > 0; b = b[4:] {
		t.Counts = append(t.Counts, binary.LittleEndian.Uint32(b))
	}
	return t, nil
}

// mergeTask merges the pieces of one range and cuts it into partitions.
func mergeTask(ctx context.Context, splitters []Key, pieces [][]byte) ([][]byte, error) {
	cuts := make([][]int, len(pieces))
	for i, p := range pieces {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := len(p) / recordSize
		cuts[i] = append(cut(n, func(i int) []byte { return p[i*recordSize:] }, splitters), n)
	}
	out := make([][]byte, len(splitters)+1)
	from := make([]int, len(pieces))
	runs := make([][]byte, len(pieces))
	for k := range out {
		size := 0
		for i, p := range pieces {
			runs[i] = p[from[i]*recordSize : cuts[i][k]*recordSize]
			size += len(runs[i])
			from[i] = cuts[i][k]
		}
		buf, err := mobula.CreateResult[byte](ctx, k, size)
		if err != nil {
			return nil, err
		}
		out[k] = buf.Slice()
		mergeInto(out[k], runs)
	}
	return out, nil
}

// Parts are the ranges of one large partition.
type Parts struct {
	Pieces  [][]mobula.Ref[[]byte] // of each range, one of every chunk
	Sizes   []int                  // bytes of each range
	Threads int
}

// assembleTask merges range after range into one partition, so that only a few ranges are in memory beside it.
func assembleTask(ctx context.Context, in Parts) ([]byte, error) {
	offsets, total := make([]int, len(in.Sizes)), 0
	for i, n := range in.Sizes {
		offsets[i] = total
		total += n
	}
	buf, err := mobula.CreateResult[byte](ctx, 0, total)
	if err != nil {
		return nil, err
	}
	out := buf.Slice()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	fetched := make(chan fetch) // the next range comes while the last ones are merged
	var work sync.WaitGroup
	for range max(in.Threads, 1) {
		work.Go(func() {
			for f := range fetched {
				mergeInto(out[offsets[f.i]:offsets[f.i]+in.Sizes[f.i]], f.runs)
				f.close()
			}
		})
	}
	for i := range in.Pieces {
		f, err := fetchRange(ctx, i, in.Pieces[i])
		if err == nil && f.size != in.Sizes[i] {
			f.close()
			err = fmt.Errorf("range %d has %d bytes, want %d", i, f.size, in.Sizes[i])
		}
		if err != nil {
			stop(err)
			break
		}
		fetched <- f
	}
	close(fetched)
	work.Wait()
	return out, context.Cause(ctx)
}

// fetch is a range whose pieces are in memory.
type fetch struct {
	i     int
	size  int
	runs  [][]byte
	views []*mobula.View[[]byte]
}

func fetchRange(ctx context.Context, i int, pieces []mobula.Ref[[]byte]) (fetch, error) {
	f := fetch{i: i, runs: make([][]byte, len(pieces))}
	var err error
	if f.views, err = mobula.ViewAll(ctx, pieces); err != nil {
		return f, err
	}
	for k, v := range f.views {
		if f.runs[k], err = v.Value(); err != nil {
			f.close()
			return f, err
		}
		f.size += len(f.runs[k])
	}
	return f, nil
}

func (f *fetch) close() {
	for _, v := range f.views {
		_ = v.Close() // open until now
	}
}

// Summary describes checked partitions that follow one another.
type Summary struct {
	Records     int
	Sum         uint64
	First, Last Key
}

// follow adds the partitions after s. It fails if they are not in order.
func (s *Summary) follow(next Summary) error {
	if next.Records == 0 {
		return nil
	}
	if s.Records > 0 && bytes.Compare(next.First[:], s.Last[:]) < 0 {
		return fmt.Errorf("it begins with %x, the one before it ends with %x", next.First, s.Last)
	}
	if s.Records == 0 {
		s.First = next.First
	}
	s.Records, s.Sum, s.Last = s.Records+next.Records, s.Sum+next.Sum, next.Last
	return nil
}

// verifyTask checks that partitions are in order, and one after the other.
func verifyTask(ctx context.Context, parts [][]byte) (all Summary, err error) {
	for i, data := range parts {
		if err := ctx.Err(); err != nil {
			return all, err
		}
		s, err := verify(data)
		if err == nil {
			err = all.follow(s)
		}
		if err != nil {
			return all, fmt.Errorf("part %d: %w", i, err)
		}
	}
	return all, nil
}

func verify(data []byte) (Summary, error) {
	s := Summary{Records: len(data) / recordSize}
	if len(data) != s.Records*recordSize {
		return s, fmt.Errorf("%d bytes are no whole number of records", len(data))
	}
	if s.Records == 0 {
		return s, nil
	}
	for i := recordSize; i < len(data); i += recordSize {
		if less(data[i:], data[i-recordSize:]) {
			return s, fmt.Errorf("record %d is less than the one before it", i/recordSize)
		}
	}
	s.Sum, s.First, s.Last = checksum(data), keyOf(data), keyOf(data[len(data)-recordSize:])
	return s, nil
}
