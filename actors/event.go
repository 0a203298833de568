package actors

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"
)

// EventKind is what happened to a component.
type EventKind uint8

// The kinds of event.
const (
	EventStarted   EventKind = iota // the first core is built
	EventPanicked                   // the core was discarded; Backoff until the next one
	EventRestarted                  // a new core is built
	EventEscalated                  // its policy is exhausted; Parent is asked
	EventPoisoned                   // a message was dropped after its second panic
	EventFailed                     // escalation reached the root: Err is errs.ErrComponentFailed, the component is stopped
	EventStopped                    // it is gone; Dropped messages were not stepped
	eventKinds
)

var eventNames = [eventKinds]string{"started", "panicked", "restarted", "escalated", "poisoned", "failed", "stopped"}

// String is the kind's name: "restarted".
func (k EventKind) String() string {
	if k < eventKinds {
		return eventNames[k]
	}
	return "unknown"
}

// Event reports something that happened to a component. Config.OnEvent is called on the goroutine where it
// happens; it must not block and must not call Stop or StopTree.
type Event struct {
	Kind      EventKind
	Time      int64  // nanoseconds by the system's clock
	Component string // kind: "owner"
	Name      string // "owner/7"
	Path      string // with every parent's name: "root/raylet/owner/7"
	Parent    string // path
	Restarts  int    // of this component until now
	Backoff   time.Duration
	Dropped   int   // messages
	Err       error // *PanicError, *PoisonError or errs.ErrComponentFailed, with its causes
}

func (s *System) emit(n *node, e Event) {
	e.Time = s.now()
	e.Component, e.Name, e.Path = n.kind, n.name, n.path
	if n.parent != nil {
		e.Parent = n.parent.path
	}
	level := slog.LevelDebug
	switch e.Kind {
	case EventPanicked, EventRestarted:
		level = slog.LevelWarn
	case EventEscalated, EventPoisoned, EventFailed:
		level = slog.LevelError
	}
	if s.log.Enabled(context.Background(), level) {
		stack := "" // once for each panic
		if pe := (*PanicError)(nil); e.Kind == EventPanicked && errors.As(e.Err, &pe) {
			stack = pe.Stack
		}
		s.log.Log(context.Background(), level, "component "+e.Kind.String(), "component", e.Path,
			"restarts", e.Restarts, "backoff", e.Backoff, "dropped", e.Dropped, "err", e.Err, "stack", stack)
	}
	if s.onEvent != nil {
		defer s.recovered("Config.OnEvent")
		s.onEvent(e)
	}
}

// recovered, deferred, keeps a hook's panic from counting as the component's.
func (s *System) recovered(hook string) {
	if v := recover(); v != nil {
		s.log.Error("hook panicked", "hook", hook, "panic", v, "stack", string(debug.Stack()))
	}
}
