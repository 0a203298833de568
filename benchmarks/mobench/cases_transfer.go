package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mobula"
	"mobula/benchmarks/floor"
	"mobula/internal/netns"
	"mobula/internal/netns/nodes"
)

// makeThere has the first other node make an object, and waits until it is there.
func (cl *cluster) makeThere(ctx context.Context, bytes int64, mark int) (mobula.Ref[[]byte], error) {
	ref := blob.Go(ctx, mobula.V(int(bytes)), mobula.V(mark), mobula.OnNode(cl.nodes.to[0]))
	cl.did(1)
	_, _, err := mobula.Wait(ctx, []mobula.Ref[[]byte]{ref}, 1)
	return ref, err
}

// move reads an object that is on another node, and gives the seconds until all of it is here and what came over the driver's link meanwhile.
func (cl *cluster) move(ctx context.Context, ref mobula.Ref[[]byte], bytes int64, mark int) (seconds float64, t netns.Traffic, err error) {
	before, err := cl.nodes.driver.Traffic()
	if err != nil {
		return 0, t, err
	}
	begun := time.Now()
	v, err := ref.View(ctx)
	if err != nil {
		return 0, t, err
	}
	seconds = time.Since(begun).Seconds()
	defer func() { err = errors.Join(err, v.Close()) }()
	data, err := v.Value()
	if err != nil {
		return 0, t, err
	}
	if int64(len(data)) != bytes || data[0] != byte(mark) || data[bytes-1] != byte(mark) {
		return 0, t, fmt.Errorf("the object came as %d bytes, %d to %d; want %d bytes, %d at both ends", len(data), data[0], data[len(data)-1], bytes, mark)
	}
	after, err := cl.nodes.driver.Traffic()
	t = after.Since(before)
	if err == nil && t.In < bytes {
		err = fmt.Errorf("%d of %d bytes came over the link while they were waited for", t.In, bytes)
	}
	return seconds, t, err
}

// transfer moves an object into memory that held one before; first is the first after a start. How fast bytes are encrypted and memory is
// written varies from minute to minute, so the floors are measured after each run.
func transfer(ctx context.Context, b *bench) (r *report, err error) {
	touching, err := b.touchFloor(ctx)
	if err != nil {
		return nil, err
	}
	err = b.withPeer(ctx, func(p *floor.Peer) error {
		cipher, err := p.Cipher(ctx)
		if err != nil {
			return err
		}
		var first, reused, cold []float64
		s, err := b.measureFresh(ctx, setup{store: b.moved + b.moved/4}, func(cl *cluster) (rate float64, err error) {
			for i := range 2 {
				ref, err := cl.makeThere(cl.ctx, b.moved, i+1)
				if err != nil {
					return 0, err
				}
				seconds, _, err := cl.move(cl.ctx, ref, b.moved, i+1)
				if err != nil {
					return 0, err
				}
				if rate = float64(b.moved) / gib / seconds; i == 0 {
					first = append(first, rate)
				}
				ref.Release()
				if err := cl.empty(cl.ctx); err != nil {
					return 0, err
				}
			}
			f, err := streamFloor(cl.ctx, p, b.moved)
			reused, cold = append(reused, f.reused), append(cold, f.cold)
			return rate, err
		})
		if err != nil {
			return err
		}
		r = &report{unit: "GiB/s", samples: s, floor: median(reused)}
		r.add("floor_is", "a stream of crypto/tls, "+cipher)
		r.addSamples("first", first)
		least := min(median(reused), touching)
		r.add("first_floor", least)
		r.add("first_ratio", median(first)/least)
		r.add("stream_cold", median(cold))
		r.add("first_touch", touching)
		return nil
	})
	return r, err
}

// atHalf runs do once half of the bytes have come to a host. The function that it gives waits for its end.
func atHalf(ctx context.Context, h *netns.Host, bytes int64, do func(ctx context.Context) error) (wait func() error, err error) {
	before, err := h.Traffic()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	var failed error
	work.Go(func() {
		for {
			t, err := h.Traffic()
			if err == nil && t.Since(before).In >= bytes/2 {
				failed = do(context.WithoutCancel(ctx))
				return
			}
			if err = errors.Join(err, pause(ctx, time.Millisecond)); err != nil {
				failed = fmt.Errorf("nothing was done at half of the object: %w", err)
				return
			}
		}
	})
	return func() error { cancel(); work.Wait(); return failed }, nil
}

// transferCut takes the holder's link down at half. The transfer goes on by itself, and nothing is sent again that had arrived.
func transferCut(ctx context.Context, b *bench) (*report, error) {
	var seconds []float64
	s, err := b.measureFresh(ctx, setup{store: b.moved + b.moved/4}, func(cl *cluster) (float64, error) {
		ref, err := cl.makeThere(cl.ctx, b.moved, 1)
		if err != nil {
			return 0, err
		}
		holder := cl.nodes.remote[0].Host
		before, err := holder.Traffic()
		if err != nil {
			return 0, err
		}
		wait, err := atHalf(cl.ctx, cl.nodes.driver, b.moved, func(ctx context.Context) error {
			return errors.Join(holder.Cut(ctx), pause(ctx, b.cut), holder.Heal(ctx))
		})
		if err != nil {
			return 0, err
		}
		took, _, err := cl.move(cl.ctx, ref, b.moved, 1)
		if err = errors.Join(err, wait()); err != nil {
			return 0, err
		}
		seconds = append(seconds, took)
		after, err := holder.Traffic()
		return float64(after.Since(before).Out) / float64(b.moved), err
	})
	return b.resent(s, seconds, err)
}

// transferKilled kills the node that sends, at half; another one has the object too.
func transferKilled(ctx context.Context, b *bench) (*report, error) {
	n := 3
	if b.mode == overEmbedded {
		n = 2
	}
	var seconds []float64
	s, err := b.measureFresh(ctx, setup{nodes: n, store: b.moved + b.moved/4}, func(cl *cluster) (float64, error) {
		ref, err := cl.makeThere(cl.ctx, b.moved, 1)
		if err != nil {
			return 0, err
		}
		if _, err := bytesOf.Go(cl.ctx, ref, mobula.OnNode(cl.nodes.to[1])).Get(cl.ctx); err != nil {
			return 0, fmt.Errorf("a second copy: %w", err)
		}
		cl.did(1)
		holders := cl.nodes.remote[:2]
		var before [2]netns.Traffic
		for i, h := range holders {
			if before[i], err = h.Host.Traffic(); err != nil {
				return 0, err
			}
		}
		wait, err := atHalf(cl.ctx, cl.nodes.driver, b.moved, func(ctx context.Context) error { return killSender(ctx, holders, before) })
		if err != nil {
			return 0, err
		}
		took, t, err := cl.move(cl.ctx, ref, b.moved, 1)
		if err = errors.Join(err, wait()); err != nil {
			return 0, err
		}
		seconds = append(seconds, took)
		return float64(t.In) / float64(b.moved), nil
	})
	return b.resent(s, seconds, err)
}

// killSender kills the node that has sent most since.
func killSender(ctx context.Context, holders []*nodes.Node, before [2]netns.Traffic) error {
	var sent [2]int64
	for i, h := range holders {
		t, err := h.Host.Traffic()
		if err != nil {
			return err
		}
		sent[i] = t.Since(before[i]).Out
	}
	if sent[0] > sent[1] {
		return holders[0].Kill(ctx)
	}
	return holders[1].Kill(ctx)
}

// underWay is how far a holder may be ahead of what has arrived. A transfer that breaks may lose that much: of a small object nearly all.
const underWay = 8 * mib

// mostResent is how many bytes a broken transfer may move for each of the object's.
func (b *bench) mostResent() float64 { return max(1.1, 1+float64(underWay)/float64(b.moved)) }

func (b *bench) resent(s, seconds []float64, err error) (*report, error) {
	if err != nil {
		return nil, err
	}
	r := &report{unit: "x", samples: s}
	r.addSamples("seconds", seconds)
	if worst, most := floor.Quantile(s, 1), b.mostResent(); worst > most {
		r.failed = fmt.Sprintf("%.2f bytes were moved for each of the object's, at most %.1f may be", worst, most)
	}
	return r, nil
}
