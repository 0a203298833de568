package memmon

import "time"

// forget is the time in which what heaps have grown above what they are now is forgotten by half.
const forget = 10 * time.Second

// spare is which part of the total is left free: heaps grow while the store still writes to disk what it gives away.
const spare = 16

// heaps remembers how large the processes' heaps were lately: tasks of a kind follow one another, and a store that has given way to
// one's need not do so for the next, which would be too late.
type heaps struct {
	high uint64
	at   int64
}

// room is what total leaves to the store, in bytes; at least 1, since it is never to be taken for all.
func (h *heaps) room(now int64, used, total uint64) uint64 {
	if over := int64(h.high) - int64(used); over <= 0 {
		h.high = used
	} else if passed := now - h.at; passed > 0 {
		h.high = used + uint64(float64(over)/(1+float64(passed)/float64(forget)))
	}
	h.at = now
	total -= total / spare
	if h.high >= total {
		return 1
	}
	return total - h.high
}
