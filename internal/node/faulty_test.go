package node

import (
	"context"
	"slices"
	"testing"
	"time"

	"mobula/internal/fault"
	"mobula/internal/node/outlet"
	"mobula/wire"
)

// script decides by the number of the message.
type script struct {
	n    int
	does map[int]fault.Decision
}

func (s *script) Ask(context.Context, fault.Site, fault.Subject) fault.Decision {
	s.n++
	return s.does[s.n]
}
func (s *script) Wants(k fault.Kind, _ string) bool { return k == fault.Message }
func (s *script) Address() string                   { return "" }
func (s *script) Calm() <-chan struct{}             { return nil }

// What is sent to a client stays in order, whatever is late; when the client goes nothing stays behind.
func TestLateMessagesKeepTheirOrder(t *testing.T) {
	hour := fault.Decision{Do: fault.Delay, For: time.Hour}
	for what, c := range map[string]struct {
		does        map[int]fault.Decision
		first, last []uint64
	}{
		"none is late":    {nil, []uint64{1, 2, 3, 4}, []uint64{1, 2, 3, 4}},
		"one is late":     {map[int]fault.Decision{2: hour}, []uint64{1}, []uint64{1, 2, 3, 4}},
		"one comes twice": {map[int]fault.Decision{2: {Do: fault.Duplicate}}, []uint64{1, 2, 2, 3, 4}, []uint64{1, 2, 2, 3, 4}},
	} {
		in := &injector{base: &base{cfg: Config{Chaos: &script{does: c.does}}}}
		s := makeSession(1, wire.RoleDriver, 1, 1)
		var got []uint64
		s.Outlet = &outlet.Local{Deliver: func(batch []wire.Msg) {
			for _, m := range batch {
				got = append(got, m.(*wire.Reply).Req)
			}
		}}
		s.faults = in.ofSession(s)
		for i := range uint64(4) {
			s.Push(&wire.Reply{Req: i + 1})
			s.Flush()
		}
		if !slices.Equal(got, c.first) {
			t.Errorf("%s: %v, want %v", what, got, c.first)
		}
		s.faults.close()
		s.Flush()
		if !slices.Equal(got, c.last) {
			t.Errorf("%s: %v in the end, want %v", what, got, c.last)
		}
		s.Close()
		s.finish()
	}
}

// Two that are late follow one another.
func TestOneLateMessageAfterAnother(t *testing.T) {
	soon := fault.Decision{Do: fault.Delay, For: time.Millisecond}
	in := &injector{base: &base{cfg: Config{Chaos: &script{does: map[int]fault.Decision{1: soon, 3: soon}}}}}
	s := makeSession(1, wire.RoleDriver, 1, 1)
	got := make(chan uint64, 4)
	s.Outlet = &outlet.Local{Deliver: func(batch []wire.Msg) {
		for _, m := range batch {
			got <- m.(*wire.Reply).Req
		}
	}}
	s.faults = in.ofSession(s)
	for i := range uint64(4) {
		s.Push(&wire.Reply{Req: i + 1})
	}
	for want := range uint64(4) {
		if m := <-got; m != want+1 {
			t.Errorf("message %d came, want %d", m, want+1)
		}
	}
	s.Close()
	s.finish()
}
