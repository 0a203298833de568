package internode

import "mobula/wire"

// AskTime asks a node what its clock says. It is the first message of a life to another one, so that no time arrives before the two clocks can be compared.
type AskTime struct {
	Node string // the name of the node that asks
	Sent int64  // by its clock
}

// TellTime answers AskTime.
type TellTime struct {
	Sent     int64 // as it was asked
	Received int64 // by the clock of the node that answers
	Replied  int64 // likewise
}

func (*AskTime) msg()  {}
func (*TellTime) msg() {}

// ShiftTimes adds a difference of clocks to every time in a message that was decoded. Zero is no time, and stays.
func ShiftTimes(m Msg, by int64) {
	var items []ClientMsgs
	switch m := m.(type) {
	case *ToClients:
		items = m.Items
	case *FromClients:
		items = m.Items
	}
	for i := range items {
		for _, m := range items[i].Msgs {
			shiftLocal(m, by)
		}
	}
}

func shiftLocal(m wire.Msg, by int64) {
	switch m := m.(type) {
	case *wire.Submit:
		shift(by, &m.Spec.Deadline, &m.Spec.Submitted)
	case *wire.Encoded:
		m.ShiftTimes(by)
	case *wire.Done:
		shift(by, &m.Times.Received, &m.Times.Started, &m.Times.Ended)
	}
}

func shift(by int64, times ...*int64) {
	for _, t := range times {
		if *t != 0 {
			*t += by
		}
	}
}
