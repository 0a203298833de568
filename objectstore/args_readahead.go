package objectstore

import (
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/objectstore/alloc"
)

// maxReadahead bounds the objects that are noted for reading ahead.
const maxReadahead = 4096

// readAhead notes objects that a task which runs soon will ask for. Those that are spilled are read while
// nobody asks for anything else, into memory that is free: so a worker does not wait for the disk
// between two tasks. Nothing is pinned or promised. What is read is a copy that goes when its memory is needed. What another job's process made
// is not read ahead: those who ask for it read it in a file of their own, and the maker's may have gone with its job.
func (ar *args) readAhead(want []ids.ObjectID) {
	for _, id := range want {
		if r, ok := ar.objects.objs[id]; ok && !r.o.resident && r.o.job == id.Job() && ar.readaheadQueue.Len() < maxReadahead {
			ar.readaheadQueue.Push(id)
		}
	}
}

// startReadahead starts such reads. One slot of the reads is left to those that somebody waits for, and a tenth of
// the store to creates.
func (ar *args) startReadahead() {
	for ar.readaheadQueue.Len() > 0 && ar.restores.underWay+1 < ar.cfg.MaxRestores && !ar.recovering && ar.up.oldestDemand() == nil {
		id := ar.readaheadQueue.Pop()
		o := ar.objects.objs[id].o
		if o == nil || o.resident || o.restore != nil || o.gone {
			continue // it was freed, or somebody asked for it
		}
		most := ar.space.objectLimit()
		if ar.space.memoryTarget > 0 {
			most = min(most, ar.space.memoryTarget)
		}
		if ar.space.alloc.Held()+o.footprint()+most/10 > most {
			ar.readaheadQueue = queue.Queue[ids.ObjectID]{} // who needs them reads them
			return
		}
		b, ok := ar.space.alloc.Alloc(alloc.Owner(o.job), o.size, true)
		if !ok {
			ar.readaheadQueue = queue.Queue[ids.ObjectID]{}
			return
		}
		ar.space.punchTakenFromOthers() // of a slab: nothing was warm elsewhere
		o.restore = &demand{lane: laneArgs, need: o.size, o: o, block: b}
		ar.objects.relist(o)
		ar.restores.read(o.restore)
		ar.counts.ReadAhead++
	}
}
