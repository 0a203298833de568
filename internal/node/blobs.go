package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/blobdir"
	"mobula/internal/node/blobs"
)

// blobsName is the directory of the cache, in the node's.
const blobsName = "blobs"

// awaited is a blob that somebody waits for.
type awaited struct {
	from ids.Home
	who  []chan error
}

// start adds the core to the tree, if the node is of a cluster.
func (b *blobShell) start() (err error) {
	if b.links.alone() {
		return nil
	}
	b.waiting, b.offered = make(map[blobs.Key]*awaited), make(map[blobs.Place][]chan error)
	b.parts, b.checked, b.using = make(map[uint64]*blobPart), make(map[blobs.Hash]bool), make(map[blobs.Hash][]ids.JobID)
	b.has, b.sums, b.packed = make(map[blobs.Key]blobs.Hash), make(map[fileIdentity]blobs.Hash), make(map[ids.JobID]*packed)
	b.ref, err = actors.Spawn(b.sys, actors.Spec[blobs.Event, blobs.Effect]{
		Kind: "blobs", Name: "blobs",
		New:    b.build,
		Do:     b.do,
		Policy: actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	return err
}

// build makes the core. One that follows another is asked anew for what is unanswered.
func (b *blobShell) build(actors.Start) (actors.Core[blobs.Event, blobs.Effect], []blobs.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for number, p := range b.parts {
		p.Drop()
		delete(b.parts, number)
	}
	cfg := blobs.Config{Limit: b.cfg.BlobBytes, First: b.last + 1, NameOf: b.links.nameOf}
	kept, err := blobdir.List(b.cache())
	if err != nil {
		return nil, nil, err
	}
	for _, e := range kept {
		cfg.Kept = append(cfg.Kept, blobs.Kept{Hash: e.Hash, Size: e.Size, Used: e.Used, Jobs: b.using[e.Hash]})
	}
	var first []blobs.Event
	for key, w := range b.waiting {
		first = append(first, blobs.Want{Key: key, From: w.from})
	}
	return blobs.New(cfg), first, nil
}

func (b *blobShell) cache() string { return filepath.Join(b.dir, blobsName) }

// dir is the directory of a place.
func (b *blobShell) dirOf(p blobs.Place) string {
	if p.Job == 0 {
		return b.cache()
	}
	return b.functions(p.Job)
}

// functions is where the functions of a job lie that Python processes have pickled.
func (b *blobShell) functions(job ids.JobID) string {
	return filepath.Join(b.files.Shared(job), "functions")
}

// deliver steps an event, if the node is of a cluster.
func (b *blobShell) deliver(ev blobs.Event) {
	if b.ref != nil {
		b.ref.Deliver(ev)
	}
}

// get has a blob brought here from a node, and waits for it.
func (b *blobShell) get(ctx context.Context, key blobs.Key, from ids.Home) error {
	done := make(chan error, 1)
	b.mu.Lock()
	w := b.waiting[key]
	if w == nil {
		w = &awaited{from: from}
		b.waiting[key] = w
		b.ref.Deliver(blobs.Want{Key: key, From: from})
	}
	w.who = append(w.who, done)
	b.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-b.ref.Done():
		return errs.New(errs.CodeComponentFailed, "the component of blobs has ended")
	}
}

// answer ends the wait for a blob.
func (b *blobShell) answer(key blobs.Key, err error) {
	b.mu.Lock()
	w := b.waiting[key]
	delete(b.waiting, key)
	b.mu.Unlock()
	if w == nil {
		return
	}
	for _, done := range w.who {
		done <- err
	}
}

// executable brings the executable of a job's Go workers here. Its file is the caller's.
func (b *blobShell) executable(ctx context.Context, job ids.JobID) (*os.File, error) {
	return b.cached(ctx, blobs.Key{Job: job, Kind: blobs.Executable})
}

// modules brings the zip of a Python driver's own modules here. Its file is the caller's.
func (b *blobShell) modules(ctx context.Context, job ids.JobID) (*os.File, error) {
	return b.cached(ctx, blobs.Key{Job: job, Kind: blobs.Modules})
}

func (b *blobShell) cached(ctx context.Context, key blobs.Key) (*os.File, error) {
	if err := b.get(ctx, key, key.Job.Home()); err != nil {
		return nil, err
	}
	b.mu.Lock()
	hash := b.has[key]
	b.mu.Unlock()
	if hash == executable() {
		return os.Open(ownExecutable)
	}
	return os.Open(blobdir.Path(b.cache(), hash))
}

// had notes where a blob is, and that its job uses it.
func (b *blobShell) had(e blobs.Have) {
	b.mu.Lock()
	if e.Place.Job == 0 {
		b.has[e.Key] = e.Place.Hash
		if using := b.using[e.Place.Hash]; !slices.Contains(using, e.Key.Job) {
			b.using[e.Place.Hash] = append(using, e.Key.Job)
		}
	}
	b.mu.Unlock()
	b.answer(e.Key, nil)
}

// over forgets a job.
func (b *blobShell) over(job ids.JobID) {
	if b.ref == nil {
		return
	}
	b.mu.Lock()
	delete(b.packed, job)
	for key := range b.has {
		if key.Job == job {
			delete(b.has, key)
		}
	}
	for hash, using := range b.using {
		b.using[hash] = slices.DeleteFunc(using, func(j ids.JobID) bool { return j == job })
		if len(b.using[hash]) == 0 {
			delete(b.using, hash)
		}
	}
	b.mu.Unlock()
	b.ref.Deliver(blobs.Over{Job: job})
}
