package membership

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/remote"
)

func life(home ids.Home, epoch uint64) remote.Life { return remote.Life{Home: home, Epoch: epoch} }

// node is a life at an address of its own.
func node(home ids.Home, epoch uint64) Node {
	return Node{Life: life(home, epoch), Identity: fmt.Sprint("id", home), Release: "v1", Protocol: 1, Addresses: Addresses{
		Gossip: fmt.Sprintf("10.0.0.%d:1", home), Message: fmt.Sprintf("10.0.0.%d:2", home), Transfer: fmt.Sprintf("10.0.0.%d:3", home),
	}}
}

// script steps the core of node 1, in its first life.
type script struct {
	t   *testing.T
	c   *Core
	now int64
}

func newScript(t *testing.T, set ...func(*Config)) *script {
	cfg := DefaultConfig(node(1, 1))
	for _, f := range set {
		f(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return &script{t: t, c: NewCore(cfg), now: 1e9}
}

// step gives the notices of an event, and clashes.
func (s *script) step(ev Event) (out []Effect) {
	for _, f := range s.c.Step(s.now, ev) {
		if n, ok := f.(Notice); ok {
			out = append(out, n)
		}
	}
	return out
}

func (s *script) want(ev Event, want ...Effect) {
	s.t.Helper()
	if got := s.step(ev); !reflect.DeepEqual(got, want) {
		s.t.Fatalf("%T%+v: got %s, want %s", ev, ev, show(got), show(want))
	}
}

// others gives the effects of an event that are no notices and no timer.
func (s *script) others(ev Event) (out []Effect) {
	for _, f := range s.c.Step(s.now, ev) {
		switch f.(type) {
		case Notice, After:
		default:
			out = append(out, f)
		}
	}
	return out
}

func show(fx []Effect) (out string) {
	for _, f := range fx {
		out += fmt.Sprintf("\n\t%T%+v", f, f)
	}
	return out
}

func (s *script) pass(d time.Duration) { s.now += int64(d) }

func TestANodeThatIsHeardOfIsUp(t *testing.T) {
	s := newScript(t)
	s.want(Seen{node(2, 1)}, NodeUp{node(2, 1)})
	s.want(Seen{node(2, 1)})
	moved := node(2, 1)
	moved.Addresses.Message = "10.0.0.9:2"
	s.want(Seen{moved}, NodeUp{moved})
	s.want(Seen{node(1, 1)}) // itself
}

// What the gossip gives up is dead; what a connection speaks for is not.
func TestTheGossipGivesANodeUp(t *testing.T) {
	s := newScript(t)
	s.step(Seen{node(2, 1)})
	s.want(Failed{life(2, 1)}, NodeDead{life(2, 1), Unheard})
	s.want(Failed{life(2, 1)})
	s.want(Seen{node(2, 1)}, NodeUp{node(2, 1)})
	s.want(Connected{life(2, 1)})
	s.want(Failed{life(2, 1)}, NodeSuspect{life(2, 1), Unheard})
	s.want(Broken{life(2, 1)}, NodeDead{life(2, 1), Unheard})
	s.want(Connected{life(2, 1)}, NodeSuspect{life(2, 1), Unheard})
	s.want(Seen{node(2, 1)}, NodeUp{node(2, 1)})
}

func TestAConnectionBreaks(t *testing.T) {
	s := newScript(t)
	s.step(Seen{node(2, 1)})
	s.step(Connected{life(2, 1)})
	s.want(Broken{life(2, 1)}, NodeSuspect{life(2, 1), Disconnected})
	s.want(NobodyListens{life(2, 1)}, NodeDead{life(2, 1), Refused})
	s.want(NobodyListens{life(2, 1)})
	s.want(Seen{node(2, 1)}) // the gossip has not noticed: that says nothing
	s.want(Connected{life(2, 1)}, NodeUp{node(2, 1)})
}

// One heartbeat may have been under way when doubt arose. Two were not.
func TestHeartbeatsSpeakForANode(t *testing.T) {
	s := newScript(t)
	s.step(Seen{node(2, 1)})
	s.step(Beat{node(2, 1), 7})
	s.want(Broken{life(2, 1)}, NodeSuspect{life(2, 1), Disconnected})
	s.want(Beat{node(2, 1), 8})
	s.want(Beat{node(2, 1), 8})
	s.want(Beat{node(2, 1), 9}, NodeUp{node(2, 1)})

	s.want(Failed{life(2, 1)}, NodeDead{life(2, 1), Unheard})
	s.want(Beat{node(2, 1), 10})
	s.want(Beat{node(2, 1), 11}, NodeSuspect{life(2, 1), Unheard}) // it lives, but the gossip does not reach it
}

// The table has rows of nodes that died long ago: a row alone speaks for nobody.
func TestARowAloneIsNoLife(t *testing.T) {
	s := newScript(t)
	s.want(Beat{node(2, 4), 70})
	s.want(Broken{life(2, 4)})
	s.want(Beat{node(2, 4), 71})
	s.want(Beat{node(2, 4), 72}, NodeUp{node(2, 4)})
}

func TestANodeLeaves(t *testing.T) {
	s := newScript(t)
	s.step(Seen{node(2, 1)})
	s.want(Leaving{life(2, 1)}, NodeLeft{life(2, 1)})
	s.want(Failed{life(2, 1)})
	s.want(Beat{node(2, 1), 3})
	s.step(Seen{node(3, 1)})
	s.want(Failed{life(3, 1)}, NodeDead{life(3, 1), Unheard})
	s.want(Leaving{life(3, 1)}, NodeLeft{life(3, 1)}) // the goodbye came later
	s.want(Seen{node(2, 2)}, NodeUp{node(2, 2)})      // it was started again
}

// A verdict is final, for the life and for all before it.
func TestAVerdictIsFinal(t *testing.T) {
	s := newScript(t)
	s.step(Seen{node(2, 3)})
	s.want(Fenced{life(2, 3)}, NodeFenced{life(2, 3)})
	for _, ev := range []Event{
		Seen{node(2, 3)}, Seen{node(2, 2)}, Connected{life(2, 3)}, Beat{node(2, 3), 9}, Broken{life(2, 3)}, Failed{life(2, 3)}, Leaving{life(2, 3)},
		Fenced{life(2, 3)}, Fenced{life(2, 2)}, Gossiped{Load{life(2, 3), 9, nil}}, Clash{life(2, 3), [2]string{"a", "b"}},
	} {
		s.want(ev)
	}
	s.want(Seen{node(2, 4)}, NodeUp{node(2, 4)})
	s.want(Fenced{life(5, 2)}, NodeFenced{life(5, 2)}) // of a node that was never heard of: a connection may have been
}

// A later life takes the place of the one before, of which nothing counts any more.
func TestALaterLife(t *testing.T) {
	s := newScript(t)
	s.step(Seen{node(2, 3)})
	s.want(Seen{node(2, 4)}, NodeDead{life(2, 3), Replaced}, NodeUp{node(2, 4)})
	s.want(Failed{life(2, 3)})
	s.want(Seen{node(2, 3)})
	s.want(Fenced{life(2, 3)}, NodeFenced{life(2, 3)})
	s.want(Broken{life(2, 4)}, NodeSuspect{life(2, 4), Disconnected})
	s.want(Connected{life(2, 5)}, NodeDead{life(2, 4), Replaced}) // what it is, is not known yet
	s.want(Seen{node(2, 5)}, NodeUp{node(2, 5)})
}

func TestThisNodesOwnHome(t *testing.T) {
	s := newScript(t, func(c *Config) { c.Self.Epoch = 3 })
	s.want(Fenced{life(1, 2)})
	copied := node(1, 4)
	copied.Addresses.Gossip = "10.0.0.7:1"
	s.want(Seen{node(1, 2)}) // the gossip still has its life before
	s.want(Seen{copied}, HomeClash{1, [2]string{"10.0.0.1:1", "10.0.0.7:1"}})
	s.want(Fenced{life(1, 3)}, Superseded{3})
	s.want(Fenced{life(1, 3)})
}

func TestClashesAreToldNowAndThen(t *testing.T) {
	s := newScript(t)
	clash := Clash{life(2, 1), [2]string{"a", "b"}}
	s.want(clash, HomeClash{2, clash.Addresses})
	s.want(clash)
	moved := Clash{life(2, 1), [2]string{"a", "c"}}
	s.want(moved, HomeClash{2, moved.Addresses})
	s.pass(time.Minute)
	s.want(moved, HomeClash{2, moved.Addresses})
}

func TestWhatIsBelievedIsListed(t *testing.T) {
	s := newScript(t)
	s.step(Seen{node(3, 1)})
	s.pass(time.Second)
	s.step(Seen{node(2, 1)})
	s.step(Failed{life(3, 1)})
	s.step(Connected{life(9, 1)})
	want := []Effect{Listed{ID: 7, Members: []Member{
		{Node: node(1, 1), State: Alive}, {Node: node(2, 1), State: Alive, Since: 2e9},
		{Node: node(3, 1), State: Dead, Why: Unheard, Since: 2e9}, {Node: Node{Life: life(9, 1)}, State: Unknown, Since: 2e9},
	}}}
	for _, f := range s.c.Step(s.now, List{7}) {
		if l, ok := f.(Listed); ok && !reflect.DeepEqual([]Effect{l}, want) {
			t.Errorf("got %+v, want %+v", l, want)
		}
	}
}
