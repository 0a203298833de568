package chaos

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/fault"
)

// Rule is one fault to make. Occurrences of its target are counted from 1.
type Rule struct {
	At     Target
	Nth    int     // the first occurrence that may be hit; 0 is 1
	Times  int     // how many are hit; 0: one, or with a Chance any number; -1: any number
	Chance float64 // of each occurrence from Nth on, decided by the seed; 0: all of them
	Do     Action
}

// Target is where a fault is made.
type Target struct{ site fault.Site }

// String names the target.
func (t Target) String() string { return t.site.String() }

// Place is a place that the program has marked by Point or Check.
func Place(name string) Target { return Target{fault.Site{Kind: fault.Place, Name: name}} }

// Before is a call that is about to begin, by the name under which the function or actor is registered; for a method it is
// "actor.Method". The function must be in Go.
func Before(function string) Target {
	return Target{fault.Site{Kind: fault.Before, Name: function}}
}

// After is a call that has returned and was not reported yet: its effects are done, its caller does not know.
func After(function string) Target { return Target{fault.Site{Kind: fault.After, Name: function}} }

// Message is a message of that kind on its way between the node and a driver or worker, in either direction; the names are those of
// wire/mobula.proto.
func Message(kind string) Target { return Target{fault.Site{Kind: fault.Message, Name: kind}} }

// Component is a part of the node about to handle a message: its kind, as `mobula list components` shows it ("owner", "scheduler",
// "objectstore", "spiller", ...; empty: any), and the message's Go type ("FromClient"; empty: any).
func Component(kind, message string) Target {
	return Target{fault.Site{Kind: fault.Component, Name: kind, Detail: message}}
}

// Spill is the node about to write objects to spill storage.
func Spill() Target { return Target{fault.Site{Kind: fault.Spill}} }

// Create is a client that asks for room in the object store.
func Create() Target { return Target{fault.Site{Kind: fault.Create}} }

// Action is the fault to make.
type Action struct {
	do          fault.Action
	least, most time.Duration
	err         error
}

// Crash kills a worker process without notice: the one that runs the call, that is at the place, or whose message it is. A Component panics
// instead, in the middle of its step: its core has changed, but no effect has run.
func Crash() Action { return Action{do: fault.Crash} }

// Freeze stops that process for d; 0: until Plan.Thaw.
func Freeze(d time.Duration) Action { return Action{do: fault.Freeze, least: d} }

// KillNode kills the node's process without notice, and starts it again. It takes mobulatest.StartNode.
func KillNode() Action { return Action{do: fault.KillNode} }

// FreezeNode stops the node's process for d; 0: until Plan.Thaw.
func FreezeNode(d time.Duration) Action { return Action{do: fault.FreezeNode, least: d} }

// Delay delays the target for d. Messages behind a delayed message wait too: order is kept.
func Delay(d time.Duration) Action { return Action{do: fault.Delay, least: d, most: d} }

// DelayUpTo is Delay by a time below most, decided by the seed.
func DelayUpTo(most time.Duration) Action { return Action{do: fault.Delay, most: most} }

// Drop loses a message. A connection is an ordered stream without gaps, so it is cut there. A worker whose connection is cut is lost,
// and its tasks run again; a driver's job ends, and its calls fail with ErrOwnerDied.
func Drop() Action { return Action{do: fault.Drop} }

// Duplicate delivers a message twice, as after a reconnect. The message must be one of Submit, PutValue, Seal, Get, Done and Resolved:
// of the others the runtime relies on exactly one.
func Duplicate() Action { return Action{do: fault.Duplicate} }

// Fail makes the call, the Check, the spill or the create fail with err; nil: with a suitable error.
func Fail(err error) Action { return Action{do: fault.Fail, err: err} }

func (r Rule) rule() fault.Rule {
	return fault.Rule{At: r.At.site, Nth: r.Nth, Times: r.Times, Chance: r.Chance, Do: r.Do.do, Least: r.Do.least, Most: r.Do.most, Err: errs.From(r.Do.err)}
}
