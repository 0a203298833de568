package objectstore

import (
	"mobula/internal/errs"
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
		sl.space.spillingBytes += sl.write(&sl.objects.cold).bytes
	}
}

// spillFiles starts writes of what lies in files outside the segment and nobody has pinned, until so many bytes of the disk budget are on their way
// out, and tells whether any are.
func (sl *spilling) spillFiles(bytes uint64) bool {
	for sl.objects.outside.n > 0 && sl.spillingFiles < bytes && sl.spills < sl.cfg.MaxSpills && sl.progress.canSpill() {
		if !sl.askCollect() {
			return true
		}
		j := sl.write(&sl.objects.outside)
		j.outside = true
		sl.spillingFiles += j.bytes
	}
	return sl.spillingFiles > 0 || sl.objects.outside.n > 0 && sl.spills > 0
}

// write starts a write of the first objects of a list.
func (sl *spilling) write(l *lru) *spillJob {
	j := &spillJob{}
	var items []SpillItem
	for l.head != nil && j.bytes < sl.minSpill() && len(items) < sl.cfg.MaxFused {
		o := l.head
		l.remove(o)
		o.spilling = true
		j.objs = append(j.objs, o)
		j.bytes += o.footprint()
		items = append(items, SpillItem{o.id, o.attempt, o.job, ref{o: o}.whole()})
	}
	sl.spills++
	sl.emit(SpillWrite{Job: sl.newJob(j), Items: items})
	return j
}

func (sl *spilling) spillDone(e SpillDone) {
	if c, ok := takeJob[*copyJob](sl.step, e.Job); ok {
		sl.copied(c, e)
		return
	}
	j, ok := takeJob[*spillJob](sl.step, e.Job)
	if !ok {
		if unused := sl.objects.unused(e.Locs); len(unused) > 0 {
			sl.emit(SpillRemove{unused}) // written for an earlier core, which is no more
		}
		return
	}
	sl.spills--
	if j.outside {
		sl.spillingFiles -= j.bytes
	} else {
		sl.space.spillingBytes -= j.bytes
	}
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
		sl.objects.files.add(o, e.Locs[i], true)
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
	if most := uint64(float64(sl.cfg.FallbackBytes) * sl.cfg.SpillThreshold); sl.space.fallbackBytes > most {
		sl.spillFiles(sl.space.fallbackBytes - most)
	}
}

func (sl *spilling) minSpill() uint64 { return min(sl.cfg.MinSpillBytes, sl.space.alloc.Limit()/8) }
