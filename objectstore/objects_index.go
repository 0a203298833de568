package objectstore

import "mobula/objectstore/record"

// record writes the object's state to the index. Its payload is there since it was sealed.
func (os *objects) record(o *object) { os.recordWith(o, nil) }

func (os *objects) recordWith(o *object, payload []byte) {
	r := record.Record{State: record.StateSealed, ID: o.id, Attempt: o.attempt, Size: o.size, Job: o.job, Spilled: o.spilled, Loc: o.loc,
		Packed: o.values != nil, Copy: o.of != nil || o.superseded(), Payload: payload}
	if r.Copy {
		r.Payload = []byte{} // what it is of has it
	}
	if o.resident {
		r.Resident, r.File, r.Block, r.Path = true, o.file, o.block, o.path
	}
	if d := o.restore; d != nil && d.stage == stageReading {
		r.State, r.File, r.Block, r.Path = record.StateRestoring, d.file, d.block, d.path
	}
	if d := o.filling; d != nil { // a new core keeps the block until the read has ended, and nothing else
		r.State, r.File, r.Block, r.Path, r.Spilled = record.StateRestoring, d.file, d.block, d.path, false
	}
	os.emit(WriteRecord{o.slot, r})
}

// superseded tells whether another object has the id: to the index it is a copy without an object then, which stays for those alone who may read it.
func (o *object) superseded() bool { return o.values == nil && len(o.orphaned) > 0 }
