package owner

import "slices"

// Rest is the records that a log could not take, since its disk was full or has failed: in memory, until the log takes them. They survive a panic of the log's
// owner, as a Log does, and not the process. The zero value is empty.
type Rest struct {
	records []rested // in the order of Add
	bytes   int
	last    uint64
}

type rested struct {
	cookie uint64
	rec    []byte
	lapsed bool
}

// ofRest marks the cookies of a Rest. A log's begin with the number of a segment, of which so many are never made.
const ofRest = 1 << 63

// Add takes a copy of a record, unless there are limit bytes by then. It gives 0 then.
func (r *Rest) Add(rec []byte, limit int) (cookie uint64) {
	if r.bytes+len(rec) > limit {
		return 0
	}
	r.last++
	r.records = append(r.records, rested{cookie: ofRest | r.last, rec: slices.Clone(rec)})
	r.bytes += len(rec)
	return ofRest | r.last
}

// Len is how many records there are.
func (r *Rest) Len() int { return len(r.records) }

// Free drops a record. It is false where the cookie is a log's.
func (r *Rest) Free(cookie uint64) bool {
	if i, known := r.find(cookie); known {
		r.bytes -= len(r.records[i].rec)
		r.records = slices.Delete(r.records, i, i+1)
	}
	return cookie&ofRest != 0
}

// Lapse notes what a log is told of a record, once it has it. It is false where the cookie is a log's.
func (r *Rest) Lapse(cookie uint64) bool {
	if i, known := r.find(cookie); known {
		r.records[i].lapsed = true
	}
	return cookie&ofRest != 0
}

// Read gives a record.
func (r *Rest) Read(cookie uint64) (rec []byte, known bool) {
	i, known := r.find(cookie)
	if !known {
		return nil, false
	}
	return slices.Clone(r.records[i].rec), true
}

// Replay calls yield for every record until it returns false.
func (r *Rest) Replay(yield func(cookie uint64, rec []byte) bool) {
	for _, x := range slices.Clone(r.records) {
		if !yield(x.cookie, x.rec) {
			return
		}
	}
}

// Moves has a log take the records, as long as it can. relocate gives the place where the owner keeps a cookie, or nil for one that it does not need any more.
func (r *Rest) Moves(relocate func(cookie uint64, rec []byte) *uint64, appends func(rec []byte) (uint64, error), lapse func(cookie uint64)) {
	n := 0
	for _, x := range r.records {
		if at := relocate(x.cookie, x.rec); at != nil {
			cookie, err := appends(x.rec)
			if err != nil {
				break
			}
			if *at = cookie; x.lapsed {
				lapse(cookie)
			}
		}
		r.bytes -= len(x.rec)
		n++
	}
	r.records = slices.Delete(r.records, 0, n)
}

func (r *Rest) find(cookie uint64) (int, bool) {
	return slices.BinarySearchFunc(r.records, cookie, func(x rested, cookie uint64) int {
		switch {
		case x.cookie < cookie:
			return -1
		case x.cookie > cookie:
			return 1
		}
		return 0
	})
}
