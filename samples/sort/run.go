package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"mobula"
)

// sampleSize is how many keys are sampled to place the splitters: ranges then differ by a few percent.
const sampleSize = 200_000

// sorter is one run of the pipeline.
type sorter struct {
	cfg       config
	plan      plan
	splitters []Key // between ranges
	bounds    []Key // between partitions, if a range is several of them
	progress  progress

	pieces [][]mobula.Ref[[]byte] // by range, then by chunk; released when they are merged
	sizes  []int64                // bytes of each range
	sum    uint64                 // checksum of all records
	out    []mobula.Ref[[]byte]   // the partitions
}

// run sorts and verifies.
func run(ctx context.Context, cfg config, w *watch, bar progress) (result, error) {
	s := &sorter{cfg: cfg, plan: newPlan(cfg), progress: bar}
	node, err := w.c.Status(ctx)
	if err != nil {
		return result{}, err
	}
	s.plan.threads = min(s.plan.threads, max(int(node.Resources["CPU"].Total), 1)) // workers of a cluster are on many nodes, a merge is on one
	r := result{Data: cfg.data, Store: cfg.store, Partitions: cfg.partitions, Workers: cfg.workers}
	start := time.Now()
	bar.start(s.plan.steps())
	defer bar.done()
	for _, step := range []struct {
		name string
		do   func(ctx context.Context) error
	}{{"plan", s.prepare}, {"split", s.split}, {"merge", s.merge}, {"verify", s.verify}} {
		began := time.Now()
		bar.phase(step.name)
		if err := step.do(ctx); err != nil {
			return r, fmt.Errorf("%s: %w", step.name, err)
		}
		r.Phases = append(r.Phases, phase{step.name, time.Since(began).Seconds()})
	}
	r.Wall = time.Since(start).Seconds()
	r.Records, r.Pieces = s.plan.records, s.plan.chunks*s.plan.ranges
	return r, w.note(ctx, &r.usage)
}

// prepare makes sure that a partition can be stored at all, and places the splitters.
func (s *sorter) prepare(ctx context.Context) error {
	p := s.plan
	room, err := mobula.Create[byte](ctx, max(p.records/p.partitions, 1)*recordSize)
	if err != nil {
		return fmt.Errorf("a partition: %w; ask for more partitions or a larger store", err)
	}
	room.Abort()
	sample := Sample.Go(ctx, mobula.V(p.records), mobula.V(sampleSize))
	keys, err := sample.Get(ctx)
	sample.Release() // at once, or it would be spilled with the data
	if err != nil {
		return err
	}
	sortKeys(keys)
	if p.perPartition > 1 {
		s.splitters = quantiles(keys, p.ranges)
	} else {
		s.bounds = quantiles(keys, p.partitions)
		for r := 1; r < p.ranges; r++ {
			s.splitters = append(s.splitters, s.bounds[r*p.perRange-1])
		}
	}
	s.pieces = make([][]mobula.Ref[[]byte], p.ranges)
	s.sizes = make([]int64, p.ranges)
	return nil
}

func sortKeys(keys []Key) {
	slices.SortFunc(keys, func(a, b Key) int { return bytes.Compare(a[:], b[:]) })
}

// quantiles gives the n-1 keys that cut the sorted keys into n parts.
func quantiles(keys []Key, n int) []Key {
	out := make([]Key, 0, n-1)
	for i := 1; i < n; i++ {
		out = append(out, keys[i*len(keys)/n])
	}
	return out
}

// split makes the chunks and splits each into one piece per range, a few chunks at once.
func (s *sorter) split(ctx context.Context) error {
	p := s.plan
	under := newWindow[[]byte](p.splitting)
	count := func(r mobula.Ref[[]byte]) error {
		b, err := r.Get(ctx)
		if err != nil {
			return err
		}
		t, err := decodeTrailer(b, p.ranges)
		if err != nil {
			return err
		}
		s.sum += t.Sum
		for i, n := range t.Counts {
			s.sizes[i] += int64(n) * recordSize
			s.progress.add(int64(n) * recordSize)
		}
		return nil
	}
	for c := range p.chunks {
		if err := under.room(ctx); err != nil {
			return err
		}
		first, n := p.chunkAt(c)
		results := Split.Go(ctx, p.ranges+1, mobula.V(first), mobula.V(n), mobula.V(s.splitters))
		for i, piece := range results[:p.ranges] {
			s.pieces[i] = append(s.pieces[i], piece)
		}
		under.add(results[p.ranges], count)
	}
	return under.drain(ctx)
}

// merge makes the partitions from the pieces.
func (s *sorter) merge(ctx context.Context) error {
	p := s.plan
	under := newWindow[[]byte](p.merging)
	for u := range p.units() {
		if err := under.room(ctx); err != nil {
			return err
		}
		from, to := p.unit(u)
		var out []mobula.Ref[[]byte]
		var size int64
		if p.perPartition == 1 {
			out = Merge.Go(ctx, to-from, mobula.V(s.bounds[from:to-1]), s.pieces[u])
			size = s.sizes[u]
			s.giveUp(u)
		} else {
			parts := Parts{Threads: p.threads}
			for r := u * p.perPartition; r < (u+1)*p.perPartition; r++ {
				parts.Pieces = append(parts.Pieces, s.pieces[r])
				parts.Sizes = append(parts.Sizes, int(s.sizes[r]))
				size += s.sizes[r]
			}
			out = []mobula.Ref[[]byte]{Assemble.Go(ctx, mobula.V(parts), mobula.Resources{CPU: float64(p.threads)})}
			for r := u * p.perPartition; r < (u+1)*p.perPartition; r++ {
				s.giveUp(r)
			}
		}
		s.out = append(s.out, out...)
		under.add(out[0], func(mobula.Ref[[]byte]) error {
			s.progress.add(size) // verify finds an error
			return nil
		})
	}
	return under.drain(ctx)
}

// giveUp releases a range's pieces: its merge holds them now, and they are freed when the merge is done.
func (s *sorter) giveUp(r int) {
	for _, piece := range s.pieces[r] {
		piece.Release()
	}
	s.pieces[r] = nil
}

// verify checks every partition, their order, and that nothing was lost or changed. One task checks the results of
// one merge, which are then released. The results made last are checked first: they may still be in memory.
func (s *sorter) verify(ctx context.Context) error {
	found := make([]Summary, s.plan.units())
	under := newWindow[Summary](s.plan.verifying)
	for u := len(found) - 1; u >= 0; u-- {
		if err := under.room(ctx); err != nil {
			return err
		}
		from, to := s.plan.unit(u)
		check := Verify.Go(ctx, s.out[from:to])
		for _, part := range s.out[from:to] {
			part.Release()
		}
		under.add(check, func(r mobula.Ref[Summary]) (err error) {
			if found[u], err = r.Get(ctx); err != nil {
				return s.in(u, err)
			}
			s.progress.add(int64(found[u].Records) * recordSize)
			return nil
		})
	}
	if err := under.drain(ctx); err != nil {
		return err
	}
	var all Summary
	for u, c := range found {
		if err := all.follow(c); err != nil {
			return s.in(u, err)
		}
	}
	if all.Records != s.plan.records || all.Sum != s.sum {
		return fmt.Errorf("%d records with checksum %x came out, %d with %x went in", all.Records, all.Sum, s.plan.records, s.sum)
	}
	return nil
}

// in says in which partitions an error is.
func (s *sorter) in(u int, err error) error {
	from, to := s.plan.unit(u)
	return fmt.Errorf("partitions %d to %d: %w", from, to-1, err)
}
