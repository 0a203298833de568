package transfer

import (
	"slices"

	"mobula/internal/ids"
)

// audience is who gets one object from here.
type audience struct {
	sends []*send
	nodes []ids.Home // that were sent the object, or were sent on to others, as they came
	left  []ids.Home // whose send has ended early: those that came after them may wait for them
}

// named is how many nodes a receiver is sent on to.
const named = 4

// join adds a send.
func (c *Core) join(s *send) {
	a := c.of[s.object]
	if a == nil {
		a = &audience{}
		c.of[s.object] = a
	}
	a.sends = append(a.sends, s)
	a.place(s.to)
}

// place gives a node's place among the nodes: the last, if it has none.
func (a *audience) place(node ids.Home) int {
	i := slices.Index(a.nodes, node)
	if i < 0 {
		i = len(a.nodes)
		a.nodes = append(a.nodes, node)
	}
	return i
}

func (a *audience) leave(node ids.Home) {
	a.nodes = slices.DeleteFunc(a.nodes, func(h ids.Home) bool { return h == node })
}

// part takes a send away. With the last one the audience ends.
func (c *Core) part(s *send) {
	a := c.of[s.object]
	a.sends = slices.DeleteFunc(a.sends, func(x *send) bool { return x == s })
	if s.next < s.size {
		a.leave(s.to)
		if !slices.Contains(a.left, s.to) {
			a.left = append(a.left, s.to)
		}
	}
	if len(a.sends) == 0 {
		delete(c.of, s.object)
	}
}

// others gives the nodes that are sent the object, but one.
func (a *audience) others(but ids.Home) (to []ids.Home) {
	for _, s := range a.sends {
		if s.to != but && len(to) < named && !slices.Contains(to, s.to) {
			to = append(to, s.to)
		}
	}
	return to
}

// sending tells whether an object is being sent to others than a node.
func (c *Core) sending(o Object, but ids.Home) bool {
	return slices.ContainsFunc(c.sendsOf(o), func(s *send) bool { return s.to != but })
}

func (c *Core) sendsOf(o Object) []*send {
	if a := c.of[o]; a != nil {
		return a.sends
	}
	return nil
}

// sendOn gives the nodes that a receiver may ask instead: those that came before it, the last first. Nobody was sent on to that one yet, so the receivers
// become a chain; and a receiver that has lost the one before it goes on with the one before that. One whose send has ended early goes on with those that get
// the object from here, who wait for nobody else.
func (c *Core) sendOn(o Object, node ids.Home) []ids.Home {
	a := c.of[o]
	if slices.Contains(a.left, node) {
		a.place(node)
		return a.others(node)
	}
	i := a.place(node)
	before := slices.Clone(a.nodes[max(0, i-named):i])
	slices.Reverse(before)
	return before
}
