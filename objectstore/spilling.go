package objectstore

import (
	"mobula/internal/errs"
	"mobula/wire"
)

// spill starts writes until bytes more than before are on their way out, coldest first. With urgent it
// writes what there is; else only what makes a file of its own.
func (sl *spilling) spill(bytes uint64, urgent bool) {
	for sl.objects.cold.n > 0 && sl.space.spillingBytes < bytes && sl.spills < sl.cfg.MaxSpills && sl.progress.canSpill() {
		if !urgent && sl.objects.cold.bytes < sl.minSpill() && sl.objects.cold.n < sl.cfg.MaxFused {
			return
		}
		if !sl.askCollect() {
			return
		}
		j := &spillJob{}
		var items []SpillItem
		for sl.objects.cold.head != nil && j.bytes < sl.minSpill() && len(items) < sl.cfg.MaxFused {
			o := sl.objects.cold.head
			sl.objects.cold.remove(o)
			o.spilling = true
			j.objs = append(j.objs, o)
			j.bytes += o.block.Size
			items = append(items, SpillItem{o.id, o.attempt, o.job, wire.Extent{Off: o.block.Off, Size: o.size}})
		}
		sl.spills++
		sl.space.spillingBytes += j.bytes
		sl.emit(SpillWrite{Job: sl.newJob(j), Items: items})
	}
}

func (sl *spilling) spillDone(e SpillDone) {
	j, ok := takeJob[*spillJob](sl.step, e.Job)
	if !ok {
		if unused := sl.objects.unused(e.Locs); len(unused) > 0 {
			sl.emit(SpillRemove{unused}) // written for an earlier core, which is no more
		}
		return
	}
	sl.spills--
	sl.space.spillingBytes -= j.bytes
	if e.Err == nil && len(e.Locs) != len(j.objs) {
		e.Err = errs.New(errs.CodeUnknown, "%d locations for %d objects", len(e.Locs), len(j.objs))
	}
	if e.Err != nil {
		sl.spillFailed(j, e.Err)
		return
	}
	sl.progress.disk, sl.progress.fullDisk.fileErr = diskState{}, nil
	sl.progress.noteProgress()
	sl.counts.Spills++
	for i, o := range j.objs {
		o.spilling = false
		o.spilled, o.loc = true, e.Locs[i]
		sl.counts.SpilledObjects++
		sl.counts.SpilledBytes += o.size
		if o.gone || o.pinned() {
			sl.objects.record(o)
		} else {
			sl.objects.evict(o)
		}
		sl.objects.relist(o)
	}
}

func (sl *spilling) spillFailed(j *spillJob, err error) {
	if sl.progress.disk.err == nil {
		sl.progress.disk.first = sl.now
	}
	sl.progress.disk.err = err
	sl.progress.disk.retryAt = sl.after(sl.cfg.RetrySpill << min(sl.progress.disk.fails, 5))
	sl.progress.disk.fails++
	sl.counts.SpillErrors++
	sl.wakeAt(sl.progress.disk.retryAt)
	sl.log("objects cannot be spilled: every spill directory is full, missing or failing", err)
	for _, o := range j.objs {
		o.spilling = false
		sl.objects.relist(o)
	}
}

// trim asks for what is no longer used, and spills, while the store is above its thresholds.
func (sl *spilling) trim() {
	used := sl.space.alloc.Used() - sl.objects.second.bytes
	if used > sl.space.share(sl.cfg.CollectThreshold) {
		sl.askCollect()
	}
	if most := sl.space.share(sl.cfg.SpillThreshold); used > most {
		sl.spill(used-most, false)
	}
}

func (sl *spilling) minSpill() uint64 { return min(sl.cfg.MinSpillBytes, sl.space.alloc.Limit()/8) }
