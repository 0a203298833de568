package gcs

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mobula/internal/home/register"
	"mobula/internal/ids"
)

// Bucket names a table.
type Bucket string

// The tables.
const (
	Nodes  Bucket = "nodes"  // key: home
	Homes  Bucket = "homes"  // key: home
	Actors Bucket = "actors" // key: namespace and name, encoded
)

// Buckets is every table.
var Buckets = []Bucket{Nodes, Homes, Actors}

// Record is a row of a table. Rows are kept as JSON, so that an operator can read them
// with any NATS client.
type Record interface {
	Bucket() Bucket
	Key() string
}

// NodeRecord is a node's announcement of itself, repeated with each heartbeat.
type NodeRecord struct {
	Home      ids.Home           `json:"home"`
	Name      string             `json:"name"`
	Epoch     uint64             `json:"epoch"` // grows with every start: an older epoch is fenced
	Address   string             `json:"address"`
	PID       int                `json:"pid"`
	Started   int64              `json:"started"` // Unix nanoseconds
	Resources map[string]float64 `json:"resources"`
	Version   string             `json:"version"`
	Beats     uint64             `json:"beats"` // number of heartbeats

	Heard  time.Duration `json:"-"` // in a list: how long ago the last heartbeat was heard here
	Silent bool          `json:"-"` // in a list: too long ago for a living node
}

// HomeRecord is a home and who has it.
type HomeRecord struct {
	register.Row
	Node string `json:"node,omitempty"` // the name of the node that answers for it; empty: given by its identity
}

// ActorState is a named actor's state.
type ActorState string

// The states of a named actor. A dead actor has no record: its name is free.
const (
	ActorPending ActorState = "pending" // the name is claimed, the constructor has not finished
	ActorAlive   ActorState = "alive"
)

// ActorRecord is a named actor.
type ActorRecord struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Actor     string     `json:"actor"` // ids.ActorID in hexadecimal
	Type      string     `json:"type"`
	Node      string     `json:"node"`
	Job       ids.JobID  `json:"job"`
	Detached  bool       `json:"detached"`
	Epoch     uint64     `json:"epoch"` // grows with each change of hands
	State     ActorState `json:"state"`

	MaxPendingCalls int `json:"max_pending_calls,omitempty"` // 0: without bound
}

// Bucket is Nodes.
func (NodeRecord) Bucket() Bucket { return Nodes }

// Bucket is Homes.
func (HomeRecord) Bucket() Bucket { return Homes }

// Bucket is Actors.
func (ActorRecord) Bucket() Bucket { return Actors }

// Key is the number of the node's home.
func (r NodeRecord) Key() string { return r.Home.String() }

// Key is the home's number.
func (r HomeRecord) Key() string { return r.Home.String() }

// Key is the namespace and name, encoded.
func (r ActorRecord) Key() string { return ActorKey(r.Namespace, r.Name) }

// ActorKey is the key of a named actor.
func ActorKey(namespace, name string) string { return encode(namespace) + "." + encode(name) }

// encode makes any text a legal part of a key, which may hold letters, digits, "-" and
// "_" only. Plain names stay readable; others are written in hexadecimal after an "=".
func encode(s string) string {
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !legal(r) }) < 0 {
		return s
	}
	return "=" + hex.EncodeToString([]byte(s))
}

// ParseRecord reads a row of a table, as JSON has it.
func ParseRecord(b Bucket, data []byte) (Record, error) {
	var err error
	switch b {
	case Nodes:
		var r NodeRecord
		err = json.Unmarshal(data, &r)
		return r, err
	case Homes:
		var r HomeRecord
		err = json.Unmarshal(data, &r)
		return r, err
	case Actors:
		var r ActorRecord
		if err = json.Unmarshal(data, &r); err == nil {
			if id, err := ids.ParseTask(r.Actor); err == nil {
				r.Actor = id.String() // releases before 0.5 wrote it shorter
			}
		}
		return r, err
	}
	return nil, fmt.Errorf("no table %q", b)
}
