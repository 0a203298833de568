package storage

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"mobula/internal/machine"
	"mobula/internal/pidfd"
)

// Owner says whose a session is. It lies beside the session's files.
type Owner struct {
	Node     string    `json:"node,omitempty"` // its identity
	Boot     string    `json:"boot"`           // of the machine
	PIDs     string    `json:"pids"`           // the pid namespace
	PID      int       `json:"pid"`            // 0: closed, to be opened again
	Start    string    `json:"start"`          // of the process, in ticks since boot
	Restarts bool      `json:"restarts"`
	Opened   time.Time `json:"opened"`
	Number   *uint16   `json:"number,omitempty"` // of the target, in the node's locations
}

// Self is this process as the owner of a session.
func Self(o Options) Owner {
	pids, _ := os.Readlink("/proc/self/ns/pid")
	me := Owner{Node: o.Node, Boot: machine.Boot(), PIDs: pids, PID: os.Getpid(), Restarts: o.Restarts, Opened: time.Now()}
	if ticks, _ := pidfd.Start(me.PID); ticks != 0 {
		me.Start = strconv.FormatUint(ticks, 10)
	}
	return me
}

// Local tells whether the owner's process numbers are this process's too: else nothing can be known of it.
func (o Owner) Local() bool {
	me := Self(Options{})
	return o.Boot != "" && o.Boot == me.Boot && o.PIDs == me.PIDs
}

// Alive tells whether an owner of this machine runs.
func (o Owner) Alive() bool {
	if o.PID <= 0 {
		return false
	}
	start, err := strconv.ParseUint(o.Start, 10, 64)
	if err != nil { // it could not tell
		return !pidfd.Gone(o.PID)
	}
	return pidfd.Same(o.PID, start)
}

// Foreign is the error for a node that opens a session of another; nil: it is its own, or nobody can tell.
func (o Owner) Foreign(by Options) error {
	if o.Node == "" || by.Node == "" || o.Node == by.Node {
		return nil
	}
	return fmt.Errorf("session %s is node %s's, not %s's: %w", by.Session, o.Node, by.Node, ErrForeign)
}

// Encode is the owner as it is written.
func (o Owner) Encode() []byte {
	p, err := json.Marshal(o)
	if err != nil { // none of its types can fail
		panic(err)
	}
	return p
}
