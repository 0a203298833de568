package index

import (
	"encoding/binary"

	"mobula/internal/ids"
	"mobula/objectstore/record"
)

// shortIDsSize is the fixed part of a half of versions before 3.
const shortIDsSize = 118

// readShortIDs reads the fields of a half that release 0.4 wrote: its ids had only the lower half of their job. Nothing writes
// this layout; a slot that is rewritten gets the present one.
func (h *half) readShortIDs(src []byte) {
	le, r := binary.LittleEndian, &h.rec
	r.ID.Task = ids.Widen([16]byte(src[22:38]))
	r.ID.Index = le.Uint32(src[38:])
	r.Client = ids.ClientID(le.Uint64(src[46:]))
	r.File = le.Uint32(src[58:])
	r.Block.Off = le.Uint64(src[62:])
	r.Block.Size = le.Uint64(src[70:])
	r.Size = le.Uint64(src[78:])
	r.Loc.Target = le.Uint16(src[86:])
	r.Loc.File = le.Uint64(src[88:])
	r.Loc.Off = le.Uint64(src[96:])
	r.Loc.Size = le.Uint64(src[104:])
	r.Loc.CRC = le.Uint32(src[112:])
	h.pathLen = le.Uint16(src[116:])
	attempt, pid := le.Uint32(src[42:]), le.Uint32(src[54:])
	if r.State == record.StateClient { // the job is in a field that the other kind of record does not use
		r.Job, r.PID = ids.JobID(attempt), int32(pid)
	} else {
		r.Job, r.Attempt = ids.JobID(pid), attempt
	}
}
