package node

import (
	"context"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/blobs"
	"mobula/raylet/internode"
)

// keyOf is what a job has a blob for. Only a function's key has the hash.
func keyOf(job ids.JobID, what internode.BlobKind, hash [32]byte) blobs.Key {
	k := blobs.Key{Job: job, Kind: blobs.Kind(what)}
	if k.Kind == blobs.Function {
		k.Hash = hash
	}
	return k
}

// take takes a message of another node about blobs. Files are read beside everything else.
func (b *blobShell) take(node ids.Home, m internode.Msg) {
	switch m := m.(type) {
	case *internode.FindBlob:
		b.work.Go(func() { b.find(node, m) })
	case *internode.PullBlob:
		b.work.Go(func() { b.send(node, m) })
	case *internode.BlobFound:
		b.deliver(blobs.Found{Node: node, Key: keyOf(m.Job, m.What, m.Hash), Hash: m.Hash, Size: m.Size, Err: m.Err})
	case *internode.BlobChunk:
		b.deliver(blobs.Chunk{Node: node, Key: keyOf(m.Job, m.What, m.Hash), Hash: m.Hash, Offset: m.Offset, Data: m.Data, Err: m.Err})
	case *internode.OfferBlob:
		b.work.Go(func() { b.accept(node, m) })
	case *internode.BlobTaken:
		b.taken(blobs.Place{Job: m.Job, Hash: m.Hash}, m.Err)
	}
}

// accept fetches a function that another node offers, and says so.
func (b *blobShell) accept(node ids.Home, m *internode.OfferBlob) {
	err := b.get(b.life, blobs.Key{Job: m.Job, Kind: blobs.Function, Hash: m.Hash}, node)
	b.links.say(node, &internode.BlobTaken{Job: m.Job, Hash: m.Hash, Err: errs.From(err)})
}

// taken ends the wait of those who offered a function.
func (b *blobShell) taken(p blobs.Place, err *errs.Error) {
	b.mu.Lock()
	who := b.offered[p]
	delete(b.offered, p)
	b.mu.Unlock()
	for _, done := range who {
		done <- asError(err)
	}
}

// offer has a job's home fetch a function that was pickled here, and waits until it has.
func (b *blobShell) offer(ctx context.Context, a *agent, hash blobs.Hash) error {
	done, place := make(chan error, 1), blobs.Place{Job: a.job, Hash: hash}
	b.mu.Lock()
	b.offered[place] = append(b.offered[place], done)
	first := len(b.offered[place]) == 1
	b.mu.Unlock()
	if first {
		b.links.say(a.job.Home(), &internode.OfferBlob{Job: a.job, Hash: hash})
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.life.Done():
		return errOver(a)
	}
}
