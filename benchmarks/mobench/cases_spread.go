package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"mobula"
	"mobula/benchmarks/floor"
	"mobula/internal/netns"
)

// Bounds of nodesBroadcast: bytes for each of the object's, with some room for the heads of packets.
const (
	mostIn  = 1.05 // into a node: each once
	mostOut = 2.05 // out of the driver's
)

// nodesBroadcast gives one object of the driver's to a task on each of several nodes at once.
func nodesBroadcast(ctx context.Context, b *bench) (r *report, err error) {
	n := b.receivers
	if b.mode == overNodes {
		n++
	}
	err = b.withPeer(ctx, func(p *floor.Peer) error {
		r, err = b.in(ctx, setup{nodes: n, store: b.receiverBytes + b.receiverBytes/4}, func(cl *cluster) (*report, error) {
			return b.spread(cl, p)
		})
		return err
	})
	return r, err
}

func (b *bench) spread(cl *cluster, p *floor.Peer) (*report, error) {
	hosts := []*netns.Host{cl.nodes.driver}
	for _, m := range cl.nodes.remote {
		hosts = append(hosts, m.Host)
	}
	if err := cl.toAll(cl.ctx, bytes.Repeat([]byte{1}, small)); err != nil { // workers start
		return nil, err
	}
	var in, out, stream []float64
	s, err := b.measure(cl.ctx, func(ctx context.Context, run int) (float64, error) {
		data := bytes.Repeat([]byte{byte(run)}, int(b.receiverBytes))
		before := make([]netns.Traffic, len(hosts))
		for i, h := range hosts {
			var err error
			if before[i], err = h.Traffic(); err != nil {
				return 0, err
			}
		}
		ref, err := mobula.Put(ctx, data)
		if err != nil {
			return 0, err
		}
		begun := time.Now()
		if err := cl.give(ctx, ref, len(data)); err != nil {
			return 0, err
		}
		took := time.Since(begun).Seconds()
		for i, h := range hosts {
			t, err := h.Traffic()
			if err != nil {
				return 0, err
			}
			t = t.Since(before[i])
			if i == 0 {
				out = append(out, float64(t.Out)/float64(len(data)))
			} else {
				in = append(in, float64(t.In)/float64(len(data)))
			}
		}
		ref.Release()
		f, err := streamFloor(ctx, p, b.receiverBytes)
		stream = append(stream, float64(b.receivers)*float64(b.receiverBytes)/gib/f.reused)
		return took, errors.Join(err, cl.empty(ctx))
	})
	if err != nil {
		return nil, err
	}
	r := &report{unit: "s", samples: s, floor: median(stream)}
	r.add("floor_is", fmt.Sprintf("%d streams of crypto/tls, one after another", b.receivers))
	r.addSamples("in_x", in)
	r.addSamples("source_out_x", out)
	if worst := floor.Quantile(in, 1); worst > mostIn {
		r.failed = fmt.Sprintf("%.2f bytes came to a node for each of the object's", worst)
	} else if worst := floor.Quantile(out, 1); worst > mostOut {
		r.failed = fmt.Sprintf("the source sent %.2f bytes for each of the object's", worst)
	}
	return r, nil
}

// toAll gives a value to a task on each other node.
func (cl *cluster) toAll(ctx context.Context, data []byte) error {
	ref, err := mobula.Put(ctx, data)
	if err != nil {
		return err
	}
	defer ref.Release()
	return cl.give(ctx, ref, len(data))
}

func (cl *cluster) give(ctx context.Context, ref mobula.Ref[[]byte], size int) error {
	refs := make([]mobula.Ref[int], len(cl.nodes.to))
	for i, id := range cl.nodes.to {
		refs[i] = bytesOf.Go(ctx, ref, mobula.OnNode(id))
	}
	cl.did(len(refs))
	defer func() {
		for _, ref := range refs {
			ref.Release() // the garbage collector may come late, and empty waits until nothing is listed
		}
	}()
	got, err := mobula.GetAll(ctx, refs)
	if err != nil {
		return err
	}
	for i, n := range got {
		if n != size {
			return fmt.Errorf("node %s has %d bytes of %d", cl.nodes.to[i], n, size)
		}
	}
	return nil
}
