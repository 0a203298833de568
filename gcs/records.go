package gcs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/remote"
)

// Bucket names a table.
type Bucket string

// The tables.
const (
	Nodes  Bucket = "nodes"  // key: home
	Homes  Bucket = "homes"  // key: home
	Actors Bucket = "actors" // key: namespace and name, encoded
)

// Bundles has one row, the cluster's trust bundle. It lies in the table of the authority, which writes it; the others see its changes.
const Bundles Bucket = "bundle"

// Beats has a row for each server of a cluster: the heartbeats that it heard last. Whoever may not watch the tables is told of the heartbeats alone.
const Beats Bucket = "beats" // key: server

// Buckets is every table that a node may ask for.
var Buckets = []Bucket{Nodes, Homes, Actors}

// Record is a row of a table. Rows are kept as JSON, so that an operator can read them
// with any NATS client.
type Record interface {
	Bucket() Bucket
	Key() string
}

// NodeRecord is a node's announcement of itself.
type NodeRecord struct {
	Home      ids.Home           `json:"home"`
	Name      string             `json:"name"`
	Epoch     uint64             `json:"epoch"` // grows with every start: an older epoch is fenced
	Address   string             `json:"address"`
	PID       int                `json:"pid"`
	Started   int64              `json:"started"` // Unix nanoseconds
	Resources map[string]float64 `json:"resources"`
	Labels    map[string]string  `json:"labels,omitempty"`
	Version   string             `json:"version"`
	Role      string             `json:"role,omitempty"`      // in its cluster
	Identity  string             `json:"identity,omitempty"`  // of its directory
	Addresses map[string]string  `json:"addresses,omitempty"` // where other nodes reach it, by what they want
	Beats     uint64             `json:"beats"`               // number of heartbeats when it was written; grows during a life
	Trust     uint64             `json:"trust,omitempty"`     // number of the trust bundle that it follows, with all the keys in it

	Heard   time.Duration `json:"-"` // in a list: how long ago the last heartbeat was heard here
	Silent  bool          `json:"-"` // in a list: too long ago for a living node
	Unshown bool          `json:"-"` // in a list, of this node: so long ago was one of its own shown to it; the tables do not answer
	Dead    bool          `json:"-"` // in a list: its life was ended
}

// What other nodes want of a node, by which NodeRecord.Addresses has the address.
const (
	AtNodes  = "nodes" // messages, objects, and joins of a control-plane server
	AtGossip = "gossip"
	AtTables = "gcs"
	AtRoutes = "routes"
)

// HomeRecord is a home and who has it.
type HomeRecord struct {
	register.Row
	Node   string `json:"node,omitempty"`   // the name of the node that answers for it; empty: given by its identity
	Fenced uint64 `json:"fenced,omitempty"` // lives up to this epoch are over
}

// BundleRecord is the cluster's trust bundle.
type BundleRecord struct{ trust.SignedBundle }

// BeatsRecord are the heartbeats that a server has heard since it wrote its row before.
type BeatsRecord struct {
	Server string      `json:"server"`
	Beats  []Heartbeat `json:"beats"`
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

// Bucket is Bundles.
func (BundleRecord) Bucket() Bucket { return Bundles }

// Bucket is Beats.
func (BeatsRecord) Bucket() Bucket { return Beats }

// Bucket is Actors.
func (ActorRecord) Bucket() Bucket { return Actors }

// Life is the life that the node announces.
func (r NodeRecord) Life() remote.Life { return remote.Life{Home: r.Home, Epoch: r.Epoch} }

// Key is the number of the node's home.
func (r NodeRecord) Key() string { return r.Home.String() }

// Key is the home's number.
func (r HomeRecord) Key() string { return r.Home.String() }

// Key is the same for all.
func (BundleRecord) Key() string { return string(Bundles) }

// Key is the server's name, encoded.
func (r BeatsRecord) Key() string { return encode(r.Server) }

// Key is the namespace and name, encoded.
func (r ActorRecord) Key() string { return ActorKey(r.Namespace, r.Name) }

// ActorKey is the key of a named actor.
func ActorKey(namespace, name string) string { return encode(namespace) + "." + encode(name) }

// longPart is from how many bytes on a part of a key is a hash. The server ends a connection over which a line of more than 4096 bytes comes, which
// has the key.
const longPart = 1500

// encode makes any text a legal part of a key, which may hold letters, digits, "-" and
// "_" only. Plain names stay readable; others are written in hexadecimal after an "=", and of long ones their hash after "==".
func encode(s string) string {
	part := plain(s)
	if len(part) > longPart {
		hash := sha256.Sum256([]byte(s))
		return "==" + hex.EncodeToString(hash[:])
	}
	return part
}

func plain(s string) string {
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
	switch b {
	case Nodes:
		return decode[NodeRecord](data)
	case Homes:
		return decode[HomeRecord](data)
	case Bundles:
		return decode[BundleRecord](data)
	case Beats:
		return decode[BeatsRecord](data)
	case Actors:
		r, err := decode[ActorRecord](data)
		if id, malformed := ids.ParseTask(r.Actor); err == nil && malformed == nil {
			r.Actor = id.String() // releases before 0.5 wrote it shorter
		}
		return r, err
	}
	return nil, fmt.Errorf("no table %q", b)
}

func decode[R Record](data []byte) (r R, err error) {
	err = json.Unmarshal(data, &r)
	return r, err
}
