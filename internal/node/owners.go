package node

import (
	"context"
	"errors"
	"fmt"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/raylet/oplog"
	"mobula/raylet/owner"
)

func (t *owners) get(job ids.JobID) *ownerActor {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byJob[job]
}

func (t *owners) put(o *ownerActor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byJob == nil {
		t.byJob = make(map[ids.JobID]*ownerActor)
	}
	t.byJob[o.job] = o
}

func (t *owners) remove(job ids.JobID) *ownerActor {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.byJob[job]
	delete(t.byJob, job)
	return o
}

func (t *owners) all() []*ownerActor {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]*ownerActor, 0, len(t.byJob))
	for _, o := range t.byJob {
		out = append(out, o)
	}
	return out
}

// any tells whether there is an owner: then the node chooses nodes for its tasks.
func (t *owners) any() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byJob) > 0
}

// post gives an owner an event, here or on the job's home. It is false where there is no such owner: nobody is left to care.
func (t *owners) post(job ids.JobID, ev owner.Event) bool {
	if o := t.get(job); o != nil {
		o.ref.Deliver(ev)
		return true
	}
	if a := t.links.agent(job); a != nil {
		a.post(ev)
		return true
	}
	return false
}

// resume lets the owner of a restored job go on with the clients there are.
func (t *owners) resume(job ids.JobID, orphan bool) {
	if o := t.get(job); o != nil {
		o.orphan.Store(orphan)
		o.waits.Store(false)
		o.ref.Deliver(o.restored(nil)) // other nodes drop what they had of the job's home when it starts again
	}
}

// logOptions are those of an owner's log. A node with a small store is to be small: what the log keeps mapped and in memory to be
// written again is a share of it, below what it is by default, and a few segments fit into that. So the log of a node that does not come back
// is in memory, unless much in it is live.
func logOptions(store uint64, keep bool) oplog.Options {
	share := max(4<<20, int(min(store/32, oplog.DefaultReuse)))
	return oplog.Options{Unlink: !keep, MinSegment: min(share/4, oplog.DefaultMinSegment), Reuse: share, Memory: share, MaxSegment: 2 * share}
}

// start adds the owner of a job to the tree. Of a job of before the node's restart it waits, even if nothing was logged.
func (t *owners) start(job ids.JobID, restored bool) (*ownerActor, error) {
	log, err := oplog.Open(t.files.Log(job), logOptions(t.cfg.StoreBytes, t.cfg.Keep))
	if err != nil {
		return nil, err
	}
	o := &ownerActor{owners: t, job: job, log: log, ofBefore: restored}
	o.waits.Store(restored)
	o.ref, err = actors.Spawn(t.raylet.sup, actors.Spec[owner.Event, owner.Effect]{
		Kind: "owner", Name: "owner/" + job.String(),
		New:      o.build,
		Do:       o.do,
		Flush:    o.flush,
		Stop:     o.stop,
		OnPoison: func(_ *actors.Ref[owner.Event], ev owner.Event, err error) { o.poison(ev, err) },
		Mailbox:  1 << 16,
		Policy:   ofOneJob,
	})
	if err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("owner of job %v: %w", job, err)
	}
	o.shown = &inspect.Owner{Job: job, Ref: o.ref}
	return o, nil
}

// stop closes the log, whose records are on disk as they are.
func (o *ownerActor) stop() {
	if o.rest.Len() > 0 {
		o.moveRest()
	}
	_ = o.log.Close()
}

// stop has the owners of a node that comes back leave their jobs as its next life is to find them, before workers end. Drivers have
// been told: nobody waits for them.
func (t *owners) stop(ctx context.Context) {
	if !t.cfg.Keep {
		return
	}
	for _, o := range t.all() {
		t.files.Forget(o.job)
		o.ref.Deliver(owner.Stopping{})
	}
	for _, o := range t.all() {
		if _, err := inspect.InOwner(ctx, o.shown, func(*owner.Core) struct{} { return struct{}{} }); err != nil && !errors.Is(err, actors.ErrStopped) {
			t.cfg.Logger.Warn("an owner did not stop in time; its job comes back as after a crash", "job", o.job, "err", err)
		}
	}
}
