package node

import (
	"os"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/node/blobdir"
	"mobula/internal/node/blobs"
	"mobula/raylet/internode"
)

// do carries out an effect. What takes the disk long runs beside the core.
func (b *blobShell) do(_ *actors.Ref[blobs.Event], e blobs.Effect) {
	switch e := e.(type) {
	case blobs.Ask:
		b.links.say(e.Node, &internode.FindBlob{Job: e.Key.Job, What: internode.BlobKind(e.Key.Kind), Hash: e.Key.Hash})
	case blobs.Pull:
		b.links.say(e.Node, &internode.PullBlob{Job: e.Key.Job, What: internode.BlobKind(e.Key.Kind), Hash: e.Hash, Offset: e.Offset, Size: e.Size})
	case blobs.Look:
		b.number(e.Fetch)
		b.work.Go(func() { b.ref.Deliver(blobs.Looked{Fetch: e.Fetch, Have: b.look(e.Place)}) })
	case blobs.Begin:
		b.work.Go(func() { b.ref.Deliver(blobs.Begun{Fetch: e.Fetch, Err: errs.From(b.begin(e))}) })
	case blobs.Write:
		p := b.part(e.Fetch, false)
		b.work.Go(func() {
			b.ref.Deliver(blobs.Written{Fetch: e.Fetch, Offset: e.Offset, Err: errs.From(p.Write(e.Offset, e.Data))})
		})
	case blobs.Store:
		p := b.part(e.Fetch, true)
		b.work.Go(func() { b.ref.Deliver(blobs.Stored{Fetch: e.Fetch, Err: errs.From(b.store(p))}) })
	case blobs.Drop:
		if p := b.part(e.Fetch, true); p != nil {
			p.Drop()
		}
	case blobs.Remove: // at once: a later fetch of the same may put it there again
		b.mu.Lock()
		delete(b.checked, e.Hash)
		b.mu.Unlock()
		if err := os.Remove(blobdir.Path(b.cache(), e.Hash)); err != nil && !os.IsNotExist(err) {
			b.limited.warn("a file could not be removed from the cache", "err", err)
		}
	case blobs.Have:
		b.had(e)
	case blobs.Failed:
		b.answer(e.Key, e.Err)
	default:
		panic(errs.New(errs.CodeInvalid, "the core of blobs asks for a %T, which nobody does", e)) // a fault of the program
	}
}

// number keeps the numbers of fetches apart over all cores.
func (b *blobShell) number(fetch uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = max(b.last, fetch)
}

// look tells whether a blob is here: this node's own executable, or a file whose hash is right.
func (b *blobShell) look(p blobs.Place) bool {
	if p.Job == 0 && p.Hash == executable() {
		return true
	}
	b.mu.Lock()
	known := p.Job == 0 && b.checked[p.Hash]
	b.mu.Unlock()
	if !known {
		have, err := blobdir.Check(b.dirOf(p), p.Hash)
		if err != nil {
			b.limited.warn("a file of the cache could not be read; it is fetched again", "err", err)
		}
		if !have {
			return false
		}
	}
	if p.Job == 0 {
		b.know(p.Hash)
	}
	return true
}

// know notes that a blob lies in the cache and is used now.
func (b *blobShell) know(h blobs.Hash) {
	b.mu.Lock()
	b.checked[h] = true
	b.mu.Unlock()
	if err := blobdir.Touch(b.cache(), h); err != nil {
		b.limited.warn("that a file of the cache is used could not be noted", "err", err)
	}
}

func (b *blobShell) begin(e blobs.Begin) error {
	p, err := blobdir.Begin(b.dirOf(e.Place), e.Place.Hash, e.Size, e.Fetch)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts[e.Fetch] = &blobPart{Part: p, place: e.Place}
	return nil
}

// part gives what is being written, and takes it out of the table if it is over; nil: there is none.
func (b *blobShell) part(fetch uint64, over bool) *blobPart {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.parts[fetch]
	if over {
		delete(b.parts, fetch)
	}
	return p
}

// blobPart is a blob that is being written, and where it goes.
type blobPart struct {
	*blobdir.Part
	place blobs.Place
}

func (b *blobShell) store(p *blobPart) error {
	perm := os.FileMode(0o600)
	if p.place.Job == 0 {
		perm = 0o500
	}
	err := p.Store(perm)
	if err == nil && p.place.Job == 0 {
		b.know(p.place.Hash)
	}
	return err
}
