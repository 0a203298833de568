package owner

import (
	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/ids"
	"mobula/wire"
)

// talk is anything that a client may say of calls that go straight.
func (h *hostile) talk() wire.Msg {
	actor := ids.ActorID(h.task())
	switch h.n(15, "talk") {
	case 0, 1:
		return &talk.AskWay{Actor: actor}
	case 2:
		return &talk.AskWord{Channel: h.channel()}
	case 3:
		return &talk.HangUp{Channel: h.channel()}
	case 4:
		return &talk.Lives{Channel: h.channel()}
	case 5:
		return &talk.Linked{Actor: actor, Instance: h.lease(), Channel: h.channel()}
	case 6:
		m := &talk.Told{Channel: h.channel(), No: uint64(h.n(4, "number")), NeverCame: h.n(2, "never") == 0, Said: direct.Said(h.n(4, "said"))}
		if h.n(2, "known") == 0 {
			m.Outcome = h.outcome()
		}
		return m
	case 7:
		m := &talk.Waits{No: uint64(h.n(4, "number")), Task: h.task(), Actor: actor, Instance: h.lease(), Round: uint64(h.n(4, "round"))}
		for range h.n(3, "needs") {
			m.For = append(m.For, talk.Need{Object: h.object(), Call: h.n(2, "call") == 0, Actor: ids.ActorID(h.task())})
		}
		return m
	case 8:
		return &talk.WaitOver{No: uint64(h.n(4, "number")), Task: h.task()}
	case 9:
		return &talk.Runs{Task: h.task(), Actor: actor}
	case 10:
		return &talk.Ran{Task: h.task()}
	case 11:
		return &talk.CancelMade{Task: h.task(), Wish: direct.Wish{Force: h.n(2, "force") == 0, Recursive: true, Insist: h.n(2, "insists") == 0}}
	}
	m := &talk.Adopt{Spec: h.spec(), Order: uint64(h.n(4, "order")), Channel: h.channel(), No: uint64(h.n(4, "number")), Tries: int32(h.n(3, "tries"))}
	if h.n(3, "ended") == 0 {
		m.Outcome = h.outcome()
	}
	return m
}

func (h *hostile) channel() direct.Channel {
	return direct.Channel(h.epoch<<channelBits + uint64(h.n(4, "channel")))
}

func (h *hostile) outcome() *talk.Outcome {
	o := &talk.Outcome{}
	if h.n(3, "fails") == 0 {
		o.Err = h.err()
	}
	for range h.n(3, "results") {
		o.Results = append(o.Results, h.result())
	}
	return o
}
