package memmon

import "time"

// halfLife is the half-life of the remembered growth of heaps above their present size.
const halfLife = 10 * time.Second

// total/spare is left free: heaps grow while the store still writes to disk what it gives up.
const spare = 16

// heaps remembers the recent size of the processes' heaps. Tasks of a kind follow one another: the store keeps the room that it
// made for one task free for the next, since to make it only then would be too late.
type heaps struct {
	high uint64
	at   int64
}

// room is how many bytes of total are left to the store; at least 1, since 0 would mean no limit.
func (h *heaps) room(now int64, used, total uint64) uint64 {
	if over := int64(h.high) - int64(used); over <= 0 {
		h.high = used
	} else if passed := now - h.at; passed > 0 {
		h.high = used + uint64(float64(over)/(1+float64(passed)/float64(halfLife)))
	}
	h.at = now
	total -= total / spare
	if h.high >= total {
		return 1
	}
	return total - h.high
}
