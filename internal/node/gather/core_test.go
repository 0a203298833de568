package gather

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

var crashed = errs.New(errs.CodeWorkerCrashed, "its node was killed")

// begun is a question to nodes, after which nothing has come.
func begun(t interface{ Fatalf(string, ...any) }, nodes ...ids.Home) *Core {
	c := New()
	fx := c.Step(0, Begin{Nodes: nodes, Within: time.Second, Most: 10})
	for i, node := range nodes {
		if fx[i] != (Ask{Node: node}) {
			t.Fatalf("effect %d is %+v, want node %v to be asked", i, fx[i], node)
		}
	}
	if fx[len(nodes)] != (After{Delay: time.Second}) {
		t.Fatalf("after the questions: %+v", fx[len(nodes):])
	}
	return c
}

// end is the one effect of a step that is the last.
func end(t *testing.T, fx []Effect) Done {
	t.Helper()
	if len(fx) != 1 {
		t.Fatalf("effects %+v, want the end", fx)
	}
	return fx[0].(Done)
}

// Answers in parts are put together, and a node that cannot answer has answered.
func TestAnswersArePutTogether(t *testing.T) {
	c := begun(t, 1, 2, 3)
	for _, p := range []Part{
		{Node: 2, Body: []byte("ab")}, {Node: 3, Last: true, Err: errs.New(errs.CodeNotFound, "what?")}, {Node: 2, Number: 1, Body: []byte("cd")},
	} {
		if fx := c.Step(0, p); fx != nil {
			t.Fatalf("after %+v: %+v", p, fx)
		}
	}
	c.Step(0, Part{Node: 2, Number: 2, Last: true})
	d := end(t, c.Step(0, Part{Node: 1, Last: true, Body: []byte("x")}))
	if len(d.Missing) != 0 || len(d.Answers) != 3 || string(d.Answers[0].Body) != "x" || string(d.Answers[1].Body) != "abcd" ||
		!errors.Is(d.Answers[2].Err, errs.ErrNotFound) {
		t.Errorf("the end is %+v", d)
	}
	if fx := c.Step(0, Timer{}); fx != nil {
		t.Errorf("after the end: %+v", fx)
	}
}

// Who has not answered is named, and why.
func TestWhoDoesNotAnswerIsNamed(t *testing.T) {
	c := begun(t, 1, 2, 3, 4, 5)
	c.Step(0, Part{Node: 1, Last: true})
	c.Step(0, Part{Node: 2, Body: []byte("half")})
	c.Step(0, Part{Node: 3, Number: 1, Last: true})          // the part before is lost
	c.Step(0, Part{Node: 4, Body: make([]byte, 11)})         // too large
	c.Step(0, Part{Node: 4, Number: 1, Last: true})          // and the rest of it
	c.Step(0, Gone{Node: 5, Err: crashed})                   // dead
	c.Step(0, Gone{Node: 1, Err: crashed})                   // it had answered before
	c.Step(0, Gone{Node: 9, Err: crashed})                   // not asked
	c.Step(0, Part{Node: 9, Last: true, Body: []byte("hm")}) // likewise
	d := end(t, c.Step(int64(time.Second), Timer{}))
	if len(d.Answers) != 1 || d.Answers[0].Node != 1 {
		t.Errorf("answers %+v", d.Answers)
	}
	want := map[ids.Home]error{2: errs.ErrDeadline, 3: errs.ErrProtocol, 4: errs.ErrInvalid, 5: errs.ErrWorkerCrashed}
	for _, m := range d.Missing {
		if !errors.Is(m.Err, want[m.Node]) {
			t.Errorf("node %v is missing: %v, want %v", m.Node, m.Err, want[m.Node])
		}
		delete(want, m.Node)
	}
	if len(want) > 0 || !slices.IsSortedFunc(d.Missing, func(a, b Missing) int { return int(a.Node) - int(b.Node) }) {
		t.Errorf("missing are %+v, and not %v", d.Missing, want)
	}
}

// A node that says that it is at work is waited for, one that goes on to say nothing is not.
func TestWhoIsAtWorkIsWaitedFor(t *testing.T) {
	c, second := begun(t, 1, 2), int64(time.Second)
	c.Step(second/2, Part{Node: 1})
	fx := c.Step(second, Timer{})
	if len(fx) != 1 || fx[0] != (After{Delay: time.Second / 2}) {
		t.Fatalf("when node 2 had its time: %+v", fx)
	}
	c.Step(second+second/4, Part{Node: 1, Number: 1})
	if fx = c.Step(second+second/2, Timer{}); len(fx) != 1 || fx[0] != (After{Delay: 3 * time.Second / 4}) {
		t.Fatalf("at work: %+v", fx)
	}
	d := end(t, c.Step(2*second, Part{Node: 1, Number: 2, Last: true, Body: []byte("x")}))
	if len(d.Answers) != 1 || len(d.Missing) != 1 || d.Missing[0].Node != 2 {
		t.Errorf("the end is %+v", d)
	}
}

func TestAQuestionToNobodyIsAnsweredAtOnce(t *testing.T) {
	if d := end(t, New().Step(0, Begin{Within: time.Second})); len(d.Answers)+len(d.Missing) != 0 {
		t.Errorf("the end is %+v", d)
	}
}

// Whatever comes, in whatever order: each node is in the end in exactly one list, and the end comes once, with the timer at the latest.
func TestEveryNodeIsAccountedForOnce(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(rt, "nodes")
		var nodes []ids.Home
		for i := range n {
			nodes = append(nodes, ids.Home(i+1))
		}
		c := begun(rt, nodes...)
		now := int64(0)
		var ends []Done
		step := func(ev Event) {
			for _, f := range c.Step(now, ev) {
				if d, ok := f.(Done); ok {
					ends = append(ends, d)
				}
			}
		}
		for range rapid.IntRange(0, 12).Draw(rt, "events") {
			node := ids.Home(rapid.IntRange(1, n+1).Draw(rt, "node"))
			if rapid.IntRange(0, 4).Draw(rt, "kind") == 0 {
				step(Gone{Node: node, Err: crashed})
				continue
			}
			step(Part{
				Node: node, Number: uint32(rapid.IntRange(0, 2).Draw(rt, "number")), Last: rapid.Bool().Draw(rt, "last"),
				Body: make([]byte, rapid.IntRange(0, 6).Draw(rt, "bytes")),
			})
		}
		now = int64(time.Hour)
		step(Timer{})
		if len(ends) != 1 {
			rt.Fatalf("%d ends", len(ends))
		}
		seen := make(map[ids.Home]int)
		for _, a := range ends[0].Answers {
			seen[a.Node]++
		}
		for _, m := range ends[0].Missing {
			seen[m.Node]++
		}
		for _, node := range nodes {
			if seen[node] != 1 {
				rt.Fatalf("node %v is in %d lists of %+v", node, seen[node], ends[0])
			}
		}
		if len(seen) != n {
			rt.Fatalf("nodes that were not asked: %v", seen)
		}
	})
}
