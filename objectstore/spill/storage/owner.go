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

// Owner identifies the owner of a session. It is stored beside the session's files.
type Owner struct {
	Node     string    `json:"node,omitempty"` // the node's identity
	Boot     string    `json:"boot"`           // the machine's boot id
	PIDs     string    `json:"pids"`           // the pid namespace
	PID      int       `json:"pid"`            // 0: closed, to be opened again
	Start    string    `json:"start"`          // start of the process, in ticks since boot
	Restarts bool      `json:"restarts"`
	Opened   time.Time `json:"opened"`
	Number   *uint16   `json:"number,omitempty"` // number of the target in the node's locations
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

// Local tells whether the owner is in this process' pid namespace and boot: else nothing can be known about its
// process.
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
	if err != nil { // it is unknown
		return !pidfd.Gone(o.PID)
	}
	return pidfd.Same(o.PID, start)
}

// Foreign is the error for a node that opens another node's session; nil if it is its own, or unknown.
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
