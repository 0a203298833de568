package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"mobula"
)

// ms is the time since then in milliseconds.
func ms(since time.Time) float64 { return time.Since(since).Seconds() * 1e3 }

// echoes submits n tasks that give their number.
func echoes(ctx context.Context, n int) []mobula.Ref[int] {
	refs := make([]mobula.Ref[int], n)
	for i := range refs {
		refs[i] = echo.Go(ctx, mobula.V(i))
	}
	return refs
}

// wait1k waits for references whose values the driver has; unseen_us is the same before it has looked at
// them, all tasks being done.
func wait1k(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		var unseen []float64
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
			refs := echoes(ctx, b.wait)
			cl.did(b.wait + 1)
			if v, err := total.Go(ctx, refs).Get(ctx); err != nil || v != b.wait*(b.wait-1)/2 {
				return 0, fmt.Errorf("the sum of %d tasks' results is %d, %w", b.wait, v, err)
			}
			for look := range 2 {
				begun := time.Now()
				ready, _, err := mobula.Wait(ctx, refs, len(refs))
				us := time.Since(begun).Seconds() * 1e6
				if err != nil || len(ready) != len(refs) {
					return 0, fmt.Errorf("%d of %d are ready, %w", len(ready), len(refs), err)
				}
				if look == 1 {
					return us, nil
				}
				unseen = append(unseen, us)
				if _, err := mobula.GetAll(ctx, refs); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		r := &report{unit: "us", samples: s}
		r.addSamples("unseen_us", unseen)
		return r, err
	})
}

func chain(ctx context.Context, b *bench) (*report, error) {
	return b.each(ctx, "ms", func(ctx context.Context, cl *cluster) (float64, error) {
		begun := time.Now()
		x := inc.Go(ctx, mobula.V(0))
		for range b.chain - 1 {
			x = inc.Go(ctx, x)
		}
		cl.did(b.chain)
		v, err := x.Get(ctx)
		if err != nil || v != b.chain {
			return 0, fmt.Errorf("the chain of %d ends at %d, %w", b.chain, v, err)
		}
		return ms(begun), nil
	})
}

// tree adds up in pairs: with n leaves 2n-1 tasks.
func tree(ctx context.Context, b *bench) (*report, error) {
	return b.each(ctx, "ms", func(ctx context.Context, cl *cluster) (float64, error) {
		begun := time.Now()
		level := make([]mobula.Ref[int], b.leaves)
		for i := range level {
			level[i] = echo.Go(ctx, mobula.V(1))
		}
		for len(level) > 1 {
			next := make([]mobula.Ref[int], 0, (len(level)+1)/2)
			for i := 0; i+1 < len(level); i += 2 {
				next = append(next, add.Go(ctx, level[i], level[i+1]))
			}
			if len(level)%2 == 1 {
				next = append(next, level[len(level)-1])
			}
			level = next
		}
		cl.did(2*b.leaves - 1)
		v, err := level[0].Get(ctx)
		if err != nil || v != b.leaves {
			return 0, fmt.Errorf("the tree of %d leaves gives %d, %w", b.leaves, v, err)
		}
		return ms(begun), nil
	})
}

// submit100k is the time until the last of the calls returned; done_s until the last result.
func submit100k(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		var done, used []float64
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
			begun := time.Now()
			refs := echoes(ctx, b.submit)
			t := time.Since(begun).Seconds()
			cl.did(b.submit)
			got, err := mobula.GetAll(ctx, refs)
			done = append(done, time.Since(begun).Seconds())
			used = append(used, float64(usageOf(os.Getpid()).total())/mib)
			return t, numbered(got, 0, err)
		})
		r := &report{unit: "s", samples: s}
		r.addSamples("done_s", done)
		r.add("used_mib", median(used))
		return r, err
	})
}

// queueLimit is what all processes may have together with a million tasks waiting.
const queueLimit = 2 * gib

// queue1m has every slot held until all tasks are submitted.
func queue1m(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		var submitted []float64
		var peak usage
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
			g, err := closeGates(ctx, runtime.NumCPU())
			if err != nil {
				return 0, err
			}
			defer g.remove()
			debug.FreeOSMemory() // what the run before used is not this one's
			cl.did(len(g.refs) + b.queue)
			begun := time.Now()
			refs := echoes(ctx, b.queue)
			submitted = append(submitted, time.Since(begun).Seconds())
			if u := usageOf(os.Getpid()); u.total() > peak.total() {
				peak = u
			}
			if err := g.open(ctx); err != nil {
				return 0, err
			}
			mem := sample(ctx, time.Second)
			got, err := mobula.GetAll(ctx, refs)
			t := time.Since(begun).Seconds()
			if u := mem.stop(); u.total() > peak.total() {
				peak = u
			}
			if err := numbered(got, 0, err); err != nil {
				return 0, err
			}
			for _, r := range refs {
				r.Release()
			}
			return t, cl.settle(ctx)
		})
		r := &report{unit: "s", samples: s}
		r.addSamples("submit_s", submitted)
		r.add("tasks", b.queue)
		r.add("peak_mib", float64(peak.total())/mib)
		r.add("limit_mib", queueLimit/mib)
		if peak.total() > queueLimit {
			r.failed = fmt.Sprintf("%d MiB were used at the peak, at most %d are allowed", peak.total()/mib, queueLimit/mib)
		}
		return r, err
	})
}

// args10k gives one task that many references.
func args10k(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		refs := make([]mobula.Ref[int], b.args)
		for i := range refs {
			var err error
			if refs[i], err = mobula.Put(cl.ctx, i); err != nil {
				return nil, err
			}
		}
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
			begun := time.Now()
			cl.did(1)
			v, err := total.Go(ctx, refs).Get(ctx)
			if err != nil || v != b.args*(b.args-1)/2 {
				return 0, fmt.Errorf("the sum of %d arguments is %d, %w", b.args, v, err)
			}
			return ms(begun), nil
		})
		return &report{unit: "ms", samples: s}, err
	})
}

// returns3k has one task return that many objects.
func returns3k(ctx context.Context, b *bench) (*report, error) {
	return b.each(ctx, "ms", func(ctx context.Context, cl *cluster) (float64, error) {
		begun := time.Now()
		cl.did(1)
		got, err := mobula.GetAll(ctx, several.Go(ctx, b.returns, mobula.V(b.returns)))
		return ms(begun), numbered(got, 0, err)
	})
}

// get10k gets all objects by one call, in place; copied_ms is with a copy of each.
func get10k(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		refs := make([]mobula.Ref[[]byte], b.gets)
		for i := range refs {
			refs[i] = blob.Go(cl.ctx, mobula.V(b.getBytes), mobula.V(i))
		}
		cl.did(b.gets)
		if _, _, err := mobula.Wait(cl.ctx, refs, len(refs)); err != nil {
			return nil, err
		}
		st, err := cl.store(cl.ctx)
		if err != nil {
			return nil, err
		}
		if st.InMemory != b.gets {
			return nil, fmt.Errorf("the store has %d objects in memory, want %d", st.InMemory, b.gets)
		}
		var copied []float64
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
			begun := time.Now()
			views, err := mobula.ViewAll(ctx, refs)
			t := ms(begun)
			if err != nil {
				return 0, err
			}
			for i, v := range views {
				data, err := v.Value()
				if err == nil && (len(data) != b.getBytes || data[0] != byte(i)) {
					err = fmt.Errorf("object %d has %d bytes and begins with %d", i, len(data), data[0])
				}
				if err = errors.Join(err, v.Close()); err != nil {
					return 0, err
				}
			}
			begun = time.Now()
			all, err := mobula.GetAll(ctx, refs)
			copied = append(copied, ms(begun))
			if err == nil && len(all) != len(refs) {
				err = fmt.Errorf("%d objects, want %d", len(all), len(refs))
			}
			return t, err
		})
		r := &report{unit: "ms", samples: s}
		r.addSamples("copied_ms", copied)
		r.add("stored_mib", float64(st.Sealed)/mib)
		return r, err
	})
}
