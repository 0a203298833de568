package remote

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"mobula/internal/errs"
)

var errReset = errors.New("reset")

// script steps one core, node 2's, whose other node is node 1: that one decides.
type script struct {
	t   *testing.T
	p   *Peer
	now int64
}

func newScript(t *testing.T, set ...func(*Config)) *script {
	cfg := DefaultConfig(Life{2, 5}, 1)
	for _, f := range set {
		f(&cfg)
	}
	return &script{t: t, p: NewPeer(cfg)}
}

// step gives the effects of an event, but for the timer.
func (s *script) step(ev Event) (out []Effect) {
	for _, f := range s.p.Step(s.now, ev) {
		switch f := f.(type) {
		case After:
		case *Write:
			out = append(out, *f)
		case *WriteAck:
			out = append(out, *f)
		case *Deliver:
			out = append(out, *f)
		default:
			out = append(out, f)
		}
	}
	return out
}

// want steps an event and holds its effects against what is expected; errors are compared by errors.Is.
func (s *script) want(ev Event, want ...Effect) {
	s.t.Helper()
	got := s.step(ev)
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = alike(got[i], want[i])
	}
	if !same {
		s.t.Fatalf("%T%+v: got %s, want %s", ev, ev, show(got), show(want))
	}
}

func alike(got, want Effect) bool {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	if g.Type() != w.Type() {
		return false
	}
	for i := range g.NumField() {
		if err, ok := w.Field(i).Interface().(error); ok {
			if is, _ := g.Field(i).Interface().(error); !errors.Is(is, err) {
				return false
			}
		} else if !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			return false
		}
	}
	return true
}

func show(fx []Effect) (out string) {
	for _, f := range fx {
		out += fmt.Sprintf("\n\t%T%+v", f, f)
	}
	return out
}

// meets brings a connection in use on which the other node's life has taken messages up to got.
func (s *script) meets(c ConnID, life, got uint64) []Effect {
	s.t.Helper()
	s.step(Connected{Conn: c, Dialed: true})
	out := s.step(HelloReceived{c, Hello{From: Life{1, life}, To: 2, Knows: 5, Got: got}})
	return append(out, s.step(UseReceived{c})...)
}

func TestLifeOfAMessage(t *testing.T) {
	s := newScript(t)
	s.want(Send{Payload: []byte("a")}, Dial{})
	s.want(Send{Payload: []byte("b")})
	s.want(Connected{Conn: 1, Dialed: true}, WriteHello{1, Hello{From: Life{2, 5}, To: 1}})
	s.want(HelloReceived{1, Hello{From: Life{1, 7}, To: 2}})
	s.want(UseReceived{1}, Up{Life{1, 7}}, Write{1, 1, []byte("a")}, Write{1, 2, []byte("b")})
	s.want(AckReceived{1, 1})
	s.want(Received{1, 1, []byte("x")}, Deliver{Life{1, 7}, []byte("x")})
	s.now += int64(s.p.cfg.AckDelay)
	s.want(Timer{}, WriteAck{1, 1})
	s.want(Closed{1, errReset}, Down{Life{1, 7}, errReset}, Dial{}) // b waits
	s.want(Connected{Conn: 2, Dialed: true}, WriteHello{2, Hello{From: Life{2, 5}, To: 1, Knows: 7, Got: 1}})
	s.want(HelloReceived{2, Hello{From: Life{1, 7}, To: 2, Knows: 5, Got: 2}})
	s.want(UseReceived{2}, Up{Life{1, 7}}) // b had arrived
	s.want(Received{2, 1, []byte("x")})    // its Ack was lost, or came too late
	s.want(Received{2, 3, []byte("z")}, Close{2, ErrGap}, Down{Life{1, 7}, ErrGap})
}

// A message takes the acknowledgement of what has come along, and none goes alone.
func TestAMessageTakesTheAcknowledgementAlong(t *testing.T) {
	s := newScript(t)
	s.meets(1, 7, 0)
	s.want(Received{1, 1, []byte("x")}, Deliver{Life{1, 7}, []byte("x")})
	s.want(Send{Payload: []byte("a")}, WriteAck{1, 1}, Write{1, 1, []byte("a")})
	s.want(Send{Payload: []byte("b")}, Write{1, 2, []byte("b")})
	s.now += int64(s.p.cfg.AckDelay)
	s.want(Timer{})
}

// The node with the lower home takes each connection on which it hears the other node, and lets go of the one before.
func TestTheLowerHomeDecides(t *testing.T) {
	s := &script{t: t, p: NewPeer(DefaultConfig(Life{1, 7}, 2))}
	s.step(Send{Payload: []byte("a")})
	s.step(Connected{Conn: 1, Dialed: true})
	s.step(Connected{Conn: 2})
	h := Hello{From: Life{2, 5}, To: 1}
	s.want(HelloReceived{2, h}, WriteUse{2}, Up{Life{2, 5}}, Write{2, 1, []byte("a")})
	s.want(HelloReceived{1, h}, WriteUse{1}, Close{2, ErrReplaced}, Write{1, 1, []byte("a")})
	s.want(Received{2, 1, []byte("x")}) // it comes again, on the other
	s.want(AckReceived{1, 0})
	s.want(UseReceived{1}, Close{1, ErrHandshake}, Down{Life{2, 5}, ErrHandshake}, Dial{})
}

func TestSendersAreAskedToWait(t *testing.T) {
	s := newScript(t, func(c *Config) { c.High, c.Low, c.Limit = 10, 4, 20 })
	s.step(Send{Payload: make([]byte, 10)})
	s.want(Send{Payload: make([]byte, 6)}, Full{})
	s.want(Send{Payload: make([]byte, 5)}, Refused{make([]byte, 5), errs.ErrBacklog})
	s.want(Send{Payload: make([]byte, 4)})
	s.meets(1, 7, 0)
	s.want(AckReceived{1, 1})
	s.want(AckReceived{1, 2}, Room{})
	s.want(AckReceived{1, 4}, Close{1, ErrGap}, Down{Life{1, 7}, ErrGap}, Dial{})
}

// A message that is larger than the limit goes alone.
func TestALargeMessageGoesAlone(t *testing.T) {
	s := newScript(t, func(c *Config) { c.High, c.Low, c.Limit = 10, 4, 20 })
	s.want(Send{Payload: make([]byte, 30)}, Full{}, Dial{})
	s.want(Send{Payload: make([]byte, 1)}, Refused{make([]byte, 1), errs.ErrBacklog})
}

// A node that acknowledges nothing is tried on another connection.
func TestAConnectionThatIsSilentIsGivenUp(t *testing.T) {
	s := newScript(t)
	s.step(Send{Payload: []byte("a")})
	s.meets(1, 7, 0)
	s.now += int64(5*time.Second) - 1
	s.want(Timer{})
	s.now++
	s.want(Timer{}, Close{1, ErrSilent}, Down{Life{1, 7}, ErrSilent})
	s.now += int64(20 * time.Millisecond)
	s.want(Timer{}, Dial{})
	s.want(Connected{Conn: 2, Dialed: true}, WriteHello{2, Hello{From: Life{2, 5}, To: 1, Knows: 7}})
	s.now += int64(5 * time.Second)
	s.want(Timer{}, Close{2, ErrHandshake}) // it accepts and never answers
}

// A node that is busy says so: it is not given up, and does not give the other node up while it does not read.
func TestABusyNodeIsNotGivenUp(t *testing.T) {
	s := newScript(t)
	s.step(Send{Payload: []byte("a")})
	s.meets(1, 7, 0)
	s.now += int64(4 * time.Second)
	s.want(AckReceived{1, 0})
	s.now += int64(4 * time.Second)
	s.want(Timer{})
	s.want(Busy{1}, WriteAck{1, 0})
	s.now += int64(5*time.Second) - 1
	s.want(Timer{})
	s.now++
	s.want(Busy{2}) // another connection
	s.want(Timer{}, Close{1, ErrSilent}, Down{Life{1, 7}, ErrSilent}, Dial{})
}

// A core that was rebuilt goes on with the numbers of the one before, on another connection.
func TestARebuiltCoreGoesOn(t *testing.T) {
	s := newScript(t, func(c *Config) { c.High, c.Low = 3, 1 })
	s.want(Fence{6})
	s.step(Send{Payload: []byte("aa")})
	s.meets(1, 7, 0)
	s.step(Received{1, 1, []byte("x")})
	s.step(AckReceived{1, 1})
	s.want(Send{Payload: []byte("bbbb")}, Full{}, WriteAck{1, 1}, Write{1, 2, []byte("bbbb")})
	if n := s.p.Waiting(); n != 1 {
		t.Fatalf("%d messages wait, want 1", n)
	}
	s.p = Rebuild(s.p.cfg, s.p.Kept(), [][]byte{[]byte("bbbb")})
	s.want(Timer{}, Dial{})
	s.want(Received{1, 2, []byte("y")}) // of a connection of before
	s.want(Connected{Conn: 2, Dialed: true}, WriteHello{2, Hello{From: Life{2, 5}, To: 1, Knows: 7, Got: 1}})
	s.want(HelloReceived{2, Hello{From: Life{1, 7}, To: 2, Knows: 5, Got: 1}})
	s.want(UseReceived{2}, Up{Life{1, 7}}, Write{2, 2, []byte("bbbb")})
	s.want(Received{2, 1, []byte("x")})
	s.want(Received{2, 2, []byte("y")}, Deliver{Life{1, 7}, []byte("y")})
	s.want(AckReceived{2, 2}, Room{})
	s.step(Connected{Conn: 3})
	s.want(HelloReceived{3, Hello{From: Life{1, 6}, To: 2}}, Close{3, ErrStaleLife})
	s.step(Fence{7})
	s.p = Rebuild(s.p.cfg, s.p.Kept(), nil)
	s.step(Connected{Conn: 4})
	s.want(HelloReceived{4, Hello{From: Life{1, 7}, To: 2}}, Close{4, ErrStaleLife})
}

func TestDialsBackOff(t *testing.T) {
	s := newScript(t)
	s.step(Send{Payload: []byte("a")})
	for _, ms := range []int64{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2000, 2000} {
		s.want(DialFailed{errors.New("refused")})
		s.now += ms*1e6 - 1
		s.want(Timer{})
		s.now++
		s.want(Timer{}, Dial{})
	}
	s.meets(1, 7, 0)
	s.want(Closed{1, errReset}, Down{Life{1, 7}, errReset}) // nothing had come on it
	s.now += int64(2 * time.Second)
	s.want(Timer{}, Dial{})
	s.meets(2, 7, 0)
	s.want(AckReceived{2, 0})
	s.want(Closed{2, errReset}, Down{Life{1, 7}, errReset}, Dial{})
}

func TestStrangersAreRefused(t *testing.T) {
	s := newScript(t)
	s.meets(1, 7, 0)
	for i, c := range []struct {
		hello Hello
		err   error
	}{
		{Hello{From: Life{3, 7}, To: 2}, ErrOtherNode},
		{Hello{From: Life{1, 7}, To: 3}, ErrOtherNode},
		{Hello{From: Life{1, 6}, To: 2}, ErrStaleLife},
	} {
		id := ConnID(i + 2)
		s.step(Connected{Conn: id})
		s.want(HelloReceived{id, c.hello}, Close{id, c.err})
	}
	s.step(Connected{Conn: 9})
	s.want(UseReceived{9}, Close{9, ErrHandshake}) // before it said who it is
}

// What waits when the other node begins another life is not for that one; what is sent from then on is.
func TestAnotherLife(t *testing.T) {
	s := newScript(t)
	s.step(Send{Payload: []byte("a")})
	s.meets(1, 7, 0)
	s.step(Connected{Conn: 2})
	s.want(HelloReceived{2, Hello{From: Life{1, 8}, To: 2}},
		Close{1, ErrStaleLife}, Down{Life{1, 7}, ErrStaleLife}, Restarted{Life{1, 7}, Life{1, 8}, 1})
	s.want(Send{Payload: []byte("b")})
	s.want(UseReceived{2}, Up{Life{1, 8}}, Write{2, 1, []byte("b")})
}

func TestAFencedLife(t *testing.T) {
	s := newScript(t)
	s.step(Send{Payload: []byte("a")})
	s.meets(1, 7, 0)
	s.want(AckReceived{1, 0})
	s.want(Fence{7}, Close{1, ErrStaleLife}, Down{Life{1, 7}, ErrStaleLife}, Gone{Life{1, 7}, 1})
	s.want(Fence{7})
	s.want(Send{Payload: []byte("b")}, Dial{})
	s.step(Connected{Conn: 2, Dialed: true})
	s.want(HelloReceived{2, Hello{From: Life{1, 7}, To: 2}}, Close{2, ErrStaleLife}) // it was alive, and is told
	s.step(Connected{Conn: 3})
	s.want(HelloReceived{3, Hello{From: Life{1, 8}, To: 2}})
	s.want(UseReceived{3}, Up{Life{1, 8}}, Write{3, 1, []byte("b")}) // no word of a restart: Gone was
}

// A message for a life is for no later one: who sends it has not heard yet that it is over.
func TestAMessageIsForOneLife(t *testing.T) {
	s := newScript(t)
	s.meets(1, 2, 0)
	s.want(Send{Payload: []byte("a"), To: 1})
	s.want(Send{Payload: []byte("b"), To: 2}, Write{1, 1, []byte("b")})
	s.want(Send{Payload: []byte("c")}, Write{1, 2, []byte("c")})
	s.step(Fence{Epoch: 2})
	s.want(Send{Payload: []byte("d"), To: 2})
	s.step(Send{Payload: []byte("e"), To: 3})
	if s.p.Waiting() != 1 {
		t.Errorf("%d messages wait, want the one for the life to come", s.p.Waiting())
	}
}

func TestALifeThatIsOver(t *testing.T) {
	s := newScript(t)
	s.step(Send{Payload: []byte("a")})
	s.step(Connected{Conn: 1, Dialed: true})
	s.want(HelloReceived{1, Hello{From: Life{1, 7}, To: 2, Knows: 6}},
		Superseded{6}, Close{1, ErrStaleLife}, Refused{[]byte("a"), errs.ErrShutdown})
	s.want(Send{Payload: []byte("b")}, Refused{[]byte("b"), errs.ErrShutdown})
	s.want(Connected{Conn: 2}, Close{2, ErrStaleLife})
}

// Senders that wait when this life ends are let go: what they send then is refused.
func TestALifeThatIsOverLetsSendersGo(t *testing.T) {
	s := newScript(t, func(c *Config) { c.High, c.Low = 10, 4 })
	s.want(Send{Payload: make([]byte, 11)}, Full{}, Dial{})
	s.step(Connected{Conn: 1, Dialed: true})
	s.want(HelloReceived{1, Hello{From: Life{1, 7}, To: 2, Knows: 6}},
		Superseded{6}, Room{}, Close{1, ErrStaleLife}, Refused{make([]byte, 11), errs.ErrShutdown})
}

// Of a message nothing is allocated by the cores, but room in their queues.
func TestMessagesAllocateNothing(t *testing.T) {
	s := newScript(t)
	s.meets(1, 7, 0)
	payload, number := []byte("a"), uint64(0)
	if n := testing.AllocsPerRun(1000, func() {
		number++
		s.p.Step(s.now, Send{Payload: payload})
		s.p.Step(s.now, Received{1, number, payload})
		s.p.Step(s.now, AckReceived{1, number})
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// An event that a core does not know is a fault that supervision reports.
func TestAnUnknownEventIsAFault(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it is passed over")
		}
	}()
	newScript(t).p.Step(0, nil)
}
