package actors

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Action is what a fault does to the message it hits.
type Action uint8

// The actions.
const (
	PanicMidStep Action = iota // Step runs and changes the core, then the component panics before any effect
	Delay                      // the component waits for Fault.Delay first
	Drop                       // the message is not stepped
	Duplicate                  // the message is stepped twice, with its effects
)

// Fault is one thing that should go wrong. From its injection on it counts deliveries that match Kind, Name and
// MessageType; a redelivery counts too.
type Fault struct {
	Kind        string // of component; empty: any
	Name        string // of component; empty: any
	MessageType string // Go type of the event: "sched.Want", "*wire.Put" or "Want"; empty: any
	Nth         int    // the first delivery to hit; 0 is 1
	Times       int    // how many to hit from there; 0 is 1, -1 all
	Action      Action
	Delay       time.Duration // of Delay
}

// InjectedPanic is the value of a panic that a fault made.
type InjectedPanic struct{ Fault Fault }

func (p InjectedPanic) Error() string {
	return fmt.Sprintf("injected panic (component %q %q, message %q, delivery %d)", p.Fault.Kind, p.Fault.Name, p.Fault.MessageType, max(p.Fault.Nth, 1))
}

// Faults is a set of injected faults. The zero value is empty; with no fault set a
// message pays one atomic load.
type Faults struct {
	on   atomic.Bool
	mu   sync.Mutex
	set  []*injected
	also Source // may be nil
}

// Source decides on deliveries that no fault of the set hits; it may be called concurrently.
type Source func(kind, name, message string) (Fault, bool)

// Follow sets the source that decides from now on; nil: none.
func (f *Faults) Follow(s Source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.also = s
	f.on.Store(len(f.set) > 0 || s != nil)
}

type injected struct {
	Fault
	seen int
}

// Inject sets a fault until it is used up or removed. One delivery is hit by the first
// fault that matches, in order of injection; the others count it.
func (f *Faults) Inject(fault Fault) (remove func()) {
	fault.Nth = max(fault.Nth, 1)
	if fault.Times == 0 {
		fault.Times = 1
	}
	i := &injected{Fault: fault}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set = append(f.set, i)
	f.on.Store(true)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(i)
	}
}

func (f *Faults) drop(i *injected) {
	if k := slices.Index(f.set, i); k >= 0 {
		f.set = slices.Delete(f.set, k, k+1)
	}
	f.on.Store(len(f.set) > 0 || f.also != nil)
}

// hit counts a delivery and gives the fault it is hit by.
func (f *Faults) hit(kind, name, message string) (Fault, bool) {
	f.mu.Lock()
	out, found := f.hitLocked(kind, name, message)
	also := f.also
	f.mu.Unlock()
	if !found && also != nil {
		return also(kind, name, message)
	}
	return out, found
}

func (f *Faults) hitLocked(kind, name, message string) (out Fault, found bool) {
	for _, i := range slices.Clone(f.set) {
		if i.Kind != "" && i.Kind != kind || i.Name != "" && i.Name != name || !sameType(i.MessageType, message) {
			continue
		}
		i.seen++
		last := i.Nth + i.Times - 1
		if i.seen < i.Nth || i.Times > 0 && i.seen > last {
			continue
		}
		if !found {
			out, found = i.Fault, true
		}
		if i.Times > 0 && i.seen == last {
			f.drop(i)
		}
	}
	return out, found
}

// sameType compares a wanted type name, with or without package and star, to a full one.
func sameType(want, have string) bool {
	if want == "" || want == have {
		return true
	}
	have = strings.TrimPrefix(have, "*")
	return want == have || want == have[strings.LastIndexByte(have, '.')+1:]
}
