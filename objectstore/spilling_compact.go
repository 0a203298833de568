package objectstore

import (
	"cmp"
	"errors"
	"slices"

	"mobula/internal/errs"
	"mobula/objectstore/spill"
)

// copyJob is objects of spill files that are being written anew.
type copyJob struct {
	files []*spillFile
	objs  []*object
	from  []spill.Location
}

// compact writes sparse spill files anew, some at a time: their objects are copied into another file, and have their places there once that is written and
// noted. The old file goes with the last of them. That is done when there is more garbage in sparse files than Config.SpillGarbage of the store, while no demand
// waits (idle); and whatever there is of it, and whoever waits, when a disk is full. Decision 0037.
func (sl *spilling) compact(idle bool) {
	files, full := &sl.objects.files, sl.progress.diskFull()
	if sl.copying || sl.recovering || files.sparse == 0 || !full && (!idle || sl.spills >= sl.cfg.MaxSpills || files.sparse < sl.space.share(sl.cfg.SpillGarbage)) {
		return
	}
	if sl.now < sl.copyAt {
		sl.wakeAt(sl.copyAt)
		return
	}
	most := sl.minSpill()
	if sl.copyFails > 0 {
		most = 0 // one file at a time: it may be another that is broken
	}
	j := &copyJob{files: files.sparsest(most, sl.cfg.MaxFused)}
	e := SpillCopy{}
	for _, f := range j.files {
		objs := slices.SortedFunc(slices.Values(f.objs), func(a, b *object) int { return cmp.Or(cmp.Compare(a.loc.Off, b.loc.Off), cmp.Compare(a.slot, b.slot)) })
		for _, o := range objs {
			j.objs, j.from = append(j.objs, o), append(j.from, o.loc)
			e.Objects = append(e.Objects, spill.Copy{ID: o.id, Attempt: o.attempt, From: o.loc})
		}
	}
	sl.copying = true
	e.Job = sl.newJob(j)
	sl.emit(e)
}

// copied gives objects their new places. The old ones go after these are noted, so a core that is lost in between leaves every object one that is there.
func (sl *spilling) copied(j *copyJob, e SpillDone) {
	sl.copying = false
	if e.Err == nil && len(e.Locs) != len(j.objs) {
		e.Err = errs.New(errs.CodeUnknown, "%d locations for %d objects", len(e.Locs), len(j.objs))
	}
	if e.Err != nil {
		sl.copyFailed(j, e.Err)
		return
	}
	sl.copyFails = 0
	before := sl.objects.files.size
	var unused []spill.Location
	for i, o := range j.objs {
		if !o.spilled || o.loc != j.from[i] { // it was freed meanwhile
			unused = append(unused, e.Locs[i])
			continue
		}
		unused = append(unused, o.loc)
		sl.objects.files.drop(o)
		sl.objects.files.add(o, e.Locs[i], true)
		sl.objects.record(o)
		sl.counts.CompactedBytes += o.size
	}
	sl.counts.Compactions++
	sl.counts.ReclaimedBytes += before - min(before, sl.objects.files.size)
	sl.emit(SpillRemove{unused})
	sl.progress.disk.retryAt = 0 // a disk that was full has room again
	sl.progress.noteProgress()
}

// copyFailed has files tried again, one by one. One that cannot be read is left alone: who asks for what is in it learns that.
func (sl *spilling) copyFailed(j *copyJob, err error) {
	if len(j.files) == 1 && (errors.Is(err, spill.ErrCorrupt) || errors.Is(err, spill.ErrMissing)) {
		if f := j.files[0]; sl.objects.files.byKey[f.key] == f {
			sl.objects.files.change(f, func() { f.broken = true })
		}
	}
	sl.copyAt = sl.after(sl.cfg.RetrySpill << min(sl.copyFails, 5))
	sl.copyFails++
	sl.log("spill files of which little is used could not be written anew", err)
}
