package owner

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// talk is anything that a client may say of calls that go straight.
func (h *hostile) talk() wire.Msg {
	actor := ids.ActorID(h.task())
	switch h.n(15, "talk") {
	case 0, 1:
		return &wire.AskWay{Actor: actor}
	case 2:
		return &wire.AskWord{Channel: h.channel()}
	case 3:
		return &wire.HangUp{Channel: h.channel()}
	case 4:
		return &wire.Lives{Channel: h.channel()}
	case 5:
		return &wire.Linked{Actor: actor, Instance: h.lease(), Channel: h.channel()}
	case 6:
		m := &wire.Told{Channel: h.channel(), No: uint64(h.n(4, "number")), NeverCame: h.n(2, "never") == 0, Said: wire.Said(h.n(4, "said"))}
		if h.n(2, "known") == 0 {
			m.Outcome = h.outcome()
		}
		return m
	case 7:
		m := &wire.Waits{No: uint64(h.n(4, "number")), Task: h.task(), Actor: actor, Instance: h.lease(), Round: uint64(h.n(4, "round"))}
		for range h.n(3, "needs") {
			m.Needs = append(m.Needs, wire.Need{Object: h.object(), Call: h.n(2, "call") == 0, Actor: ids.ActorID(h.task())})
		}
		return m
	case 8:
		return &wire.WaitOver{No: uint64(h.n(4, "number")), Task: h.task()}
	case 9:
		return &wire.Runs{Task: h.task(), Actor: actor}
	case 10:
		return &wire.Ran{Task: h.task()}
	case 11:
		return &wire.CancelMade{Task: h.task(), Wish: wire.Wish{Force: h.n(2, "force") == 0, Recursive: true, Insist: h.n(2, "insists") == 0}}
	}
	m := &wire.Adopt{Spec: h.spec(), Order: uint64(h.n(4, "order")), Channel: h.channel(), No: uint64(h.n(4, "number")), Tries: int32(h.n(3, "tries"))}
	if h.n(3, "ended") == 0 {
		m.Outcome = h.outcome()
	}
	return m
}

func (h *hostile) channel() uint64 {
	return h.epoch<<channelBits + uint64(h.n(4, "channel"))
}

func (h *hostile) outcome() *wire.CallOutcome {
	o := &wire.CallOutcome{}
	if h.n(3, "fails") == 0 {
		o.Err = h.err()
	}
	for range h.n(3, "results") {
		o.Results = append(o.Results, h.result())
	}
	return o
}
