package fault

import (
	"errors"
	"slices"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
)

// Kind is the kind of a site.
type Kind string

// The kinds of sites.
const (
	Place     Kind = "place"     // marked in the user's code
	Before    Kind = "before"    // a function, method or constructor is about to be called
	After     Kind = "after"     // it has returned and was not reported yet
	Message   Kind = "message"   // a message between a client and the node
	Component Kind = "component" // a component is about to step a message
	Spill     Kind = "spill"     // objects are about to be written to spill storage
	Create    Kind = "create"    // a client asks for room in the store
)

// Site is where a fault can be made. In a rule an empty Name or Detail matches any.
type Site struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name,omitempty"`
	Detail string `json:"detail,omitempty"` // for a component: the message
}

// String names it for logs.
func (s Site) String() string {
	return strings.TrimSuffix(strings.TrimRight(string(s.Kind)+" "+s.Name+" "+s.Detail, " "), " ")
}

// Action is the fault to make.
type Action string

// The actions.
const (
	None       Action = ""
	Crash      Action = "crash"
	Freeze     Action = "freeze"
	KillNode   Action = "kill the node"
	FreezeNode Action = "freeze the node"
	Delay      Action = "delay"
	Drop       Action = "drop"
	Duplicate  Action = "duplicate"
	Fail       Action = "fail"
)

// Rule is one fault to make.
type Rule struct {
	At          Site
	Nth         int     // the first occurrence that may be hit; 0 is 1
	Times       int     // how many are hit; 0: one, with a Chance any number; -1: any number
	Chance      float64 // of each occurrence from Nth on; 0: all of them
	Do          Action
	Least, Most time.Duration // for Delay; Freeze and FreezeNode use Least, 0: until Thaw
	Err         *errs.Error   // for Fail; nil: an error that suits the site
}

// Decision is what happens at one occurrence.
type Decision struct {
	Do  Action        `json:"do,omitempty"`
	For time.Duration `json:"for,omitempty"`
	Err *errs.Error   `json:"err,omitempty"`
}

// Subject is the process of an occurrence.
type Subject struct {
	PID    int  `json:"pid,omitempty"`
	Worker bool `json:"worker,omitempty"` // a worker process
	Wired  bool `json:"wired,omitempty"`  // over a connection that can be cut
}

// Mode says which faults a runtime can have.
type Mode struct {
	Processes bool // workers are processes
	Node      bool // and so is the node
}

// does are the actions at each kind of site.
var does = map[Kind][]Action{
	Place:     {Crash, Freeze, KillNode, FreezeNode, Delay, Fail},
	Before:    {Crash, Freeze, KillNode, FreezeNode, Delay, Fail},
	After:     {Crash, Freeze, KillNode, FreezeNode, Delay, Fail},
	Message:   {Crash, Freeze, KillNode, FreezeNode, Delay, Drop, Duplicate},
	Component: {Crash, KillNode, FreezeNode, Delay},
	Spill:     {KillNode, FreezeNode, Fail},
	Create:    {KillNode, FreezeNode, Fail},
}

// Repeatable are the messages that may come twice: those that clients repeat to a node that restarted, and answers that it repeats.
var Repeatable = []wire.Kind{wire.KindSubmit, wire.KindPutValue, wire.KindSeal, wire.KindGet, wire.KindDone, wire.KindResolved}

// check gives every mistake in a rule.
func (r Rule) check() error {
	var all []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			all = append(all, errs.New(errs.CodeInvalid, "chaos: %s at %v: "+format, append([]any{r.Do, r.At}, args...)...))
		}
	}
	allowed, known := does[r.At.Kind]
	bad(!known, "there is no such place")
	bad(known && !slices.Contains(allowed, r.Do), "want one of %q there", allowed)
	bad(r.Nth < 0, "occurrence %d; want 1 or more", r.Nth)
	bad(r.Times < -1, "%d times; want 1 or more, or -1 for always", r.Times)
	bad(r.Chance < 0 || r.Chance > 1, "a chance of %v; want 0 to 1", r.Chance)
	bad(r.Least < 0 || r.Most < r.Least && r.Do == Delay, "for %v to %v", r.Least, r.Most)
	if r.At.Kind == Message {
		k, ok := messageKind(r.At.Name)
		bad(!ok, "there is no message %q", r.At.Name)
		bad(ok && r.Do == Duplicate && !slices.Contains(Repeatable, k), "the protocol counts on each %s once; those that may come twice are %v", k, Repeatable)
	}
	return errors.Join(all...)
}

// can says what a rule needs that a runtime lacks.
func (r Rule) can(m Mode) error {
	switch {
	case (r.Do == KillNode || r.Do == FreezeNode) && !m.Node:
		return errs.New(errs.CodeInvalid, "chaos: %s at %v: the node is in the test's own process; use mobulatest.StartNode", r.Do, r.At)
	case r.At.Kind != Component && (r.Do == Crash || r.Do == Freeze || r.Do == Drop) && !m.Processes:
		return errs.New(errs.CodeInvalid, "chaos: %s at %v: workers are goroutines of the test's own process; use mobula.WithProcesses", r.Do, r.At)
	}
	return nil
}

func messageKind(name string) (wire.Kind, bool) {
	for k := range wire.Kind(255) {
		if name != "" && k > 0 && k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// matches tells whether a rule applies to an occurrence.
func (r Rule) matches(s Site, who Subject) bool {
	if r.At.Kind != s.Kind || r.At.Name != "" && r.At.Name != s.Name || !sameMessage(r.At.Detail, s.Detail) {
		return false
	}
	switch {
	case s.Kind == Message && (r.Do == Crash || r.Do == Freeze):
		return who.Worker
	case r.Do == Drop:
		return who.Wired
	}
	return true
}

// sameMessage compares a wanted name of a type, with or without package and star, to a full one.
func sameMessage(want, have string) bool {
	have = strings.TrimPrefix(have, "*")
	want = strings.TrimPrefix(want, "*")
	return want == "" || want == have || want == have[strings.LastIndexByte(have, '.')+1:]
}
