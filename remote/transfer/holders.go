package transfer

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"mobula/internal/ids"
)

// holder is a node that may have an object that is fetched here.
type holder struct {
	node  ids.Home
	busy  bool  // it has named others that can send it
	out   bool  // it is asked no more
	lacks bool  // since it has said that it has no intact copy
	tries int   // failures in a row
	at    int64 // it is not asked before
	err   error // why it did not send it
}

// hold adds nodes that may have the object. One that is known is worth another question if it had less than there is here.
func (f *fetch) hold(self ids.Home, nodes ...ids.Home) {
	for _, n := range nodes {
		h := f.holder(n)
		switch {
		case n == self:
		case h == nil:
			f.holders = append(f.holders, &holder{node: n})
		case errors.Is(h.err, errBehind):
			h.out = false
		}
	}
}

func (f *fetch) holder(node ids.Home) *holder {
	i := slices.IndexFunc(f.holders, func(h *holder) bool { return h.node == node })
	if i < 0 {
		return nil
	}
	return f.holders[i]
}

// next gives the node to ask now, of those that have not sent us on to others: the first with the fewest failures. If all have, the first of those must send.
// Without any it says when one may be asked again, MaxInt64: never.
func (f *fetch) next(now int64) (h *holder, must bool, at int64) {
	at = math.MaxInt64
	var busy *holder
	for _, x := range f.holders {
		switch {
		case x.out:
		case x.at > now:
			at = min(at, x.at)
		case x.busy:
			busy = cmp.Or(busy, x)
		case h == nil || x.tries < h.tries:
			h = x
		}
	}
	if h != nil {
		return h, false, math.MaxInt64
	}
	if busy != nil {
		return busy, true, math.MaxInt64
	}
	return nil, false, at
}

// Why a holder did not send the object.
var (
	errMissing = errors.New(Missing.String())
	errBusy    = errors.New(Busy.String())
	errBehind  = errors.New(Behind.String())
	errFailed  = errors.New(Failed.String())
)

// failed notes that a holder did not do what it was asked for.
func (h *holder) failed(cfg Config, now int64, err error) {
	if h.out {
		return
	}
	h.err = err
	if h.tries++; h.tries >= cfg.Tries {
		h.out = true
		return
	}
	h.at = now + int64(cfg.RetryMin)<<(h.tries-1)
}
