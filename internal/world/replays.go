package world

import "mobula/wire"

const creditWindow = 4 << 10 // of an owner: most messages are given back one by one

// keepsLast are how many messages a driver keeps in any case; of internal/client it is 65,536. With few the credit decides, with many what was forgotten.
var keepsLast = []int{4, 64}

// replays is what a driver sends again to a node that was killed: as internal/client keeps it, by the credit.
type replays struct {
	last    int // messages that it keeps in any case
	list    []wire.Msg
	bytes   int64 // of list
	sent    int64 // in all
	handled int64 // of sent, the first that an owner has handled
	asked   int64 // of sent, what went before the holdings; where none were asked for -1
	window  bool  // the first grant has come
	lost    bool  // the owner; the next one has not settled
}

func (r *replays) add(m wire.Msg) {
	switch m.Kind() {
	case wire.KindSubmit, wire.KindPutValue, wire.KindSeal:
	default:
		return
	}
	r.list = append(r.list, m)
	r.bytes += wire.Cost(m)
	r.sent += wire.Cost(m)
	for r.window && len(r.list) > r.last {
		oldest := wire.Cost(r.list[0])
		if n := r.sent - r.handled; n > 0 && r.bytes-max(oldest, 1) < n {
			break
		}
		r.bytes -= oldest
		r.list = r.list[1:]
	}
}

// credit takes a grant.
func (r *replays) credit(n int64) {
	switch {
	case n == 0 && r.asked >= 0:
		r.handled, r.asked, r.lost = r.asked, -1, false
	case r.window && !r.lost:
		r.handled = min(r.handled+n, r.sent)
	}
	r.window = true
}

// declares notes that the owner's holdings come next.
func (r *replays) declares() { r.asked, r.lost = r.sent, true }

// again gives what a node that has started again is sent.
func (r *replays) again() []wire.Msg {
	r.handled, r.asked, r.lost = r.sent-r.bytes, -1, true
	return r.list
}
