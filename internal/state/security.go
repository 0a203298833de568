package state

import "time"

// The methods about a cluster's security. All but the check are for control-plane servers.
const (
	MethodSecurityCheck = "security.check"  // SecurityRequest; SecurityReport
	MethodRevoke        = "security.revoke" // RevokeRequest; RevokedNode
	MethodRotate        = "security.rotate" // RotateRequest; Rotating
)

// SecurityRequest asks how nodes are protected.
type SecurityRequest struct {
	Node string `json:"node,omitempty"` // as in Query
}

// SecurityReport says it, for each node.
type SecurityReport struct {
	Nodes       []NodeSecurity `json:"nodes"`
	Unreachable []Unreachable  `json:"unreachable,omitempty"`
}

// Missing are the nodes that have not answered.
func (r SecurityReport) Missing() []Unreachable { return r.Unreachable }

// Exposed counts what nodes leave open to other machines.
func (r SecurityReport) Exposed() (n int) {
	for _, one := range r.Nodes {
		for _, w := range one.Weak {
			if w.Exposed {
				n++
			}
		}
	}
	return n
}

// NodeSecurity is how one node is protected.
type NodeSecurity struct {
	Node         string         `json:"node"`
	Home         string         `json:"home"`
	Cluster      string         `json:"cluster,omitempty"` // empty: it is of none
	Role         string         `json:"role,omitempty"`
	Listeners    []Listening    `json:"listeners"`
	Certificates []Certificate  `json:"certificates"` // its own first, then the roots that it trusts
	Keys         []SecretKey    `json:"keys"`
	Bundle       uint64         `json:"bundle,omitempty"`  // number of the trust bundle that it follows
	Revoked      int            `json:"revoked,omitempty"` // rows in that
	Tokens       map[string]int `json:"tokens,omitempty"`  // on a control-plane server: those that can be used, by role
	Weak         []Weakness     `json:"weak"`
}

// Listening is a socket that others can connect to, or send to.
type Listening struct {
	Network    string `json:"network"` // "tcp", "udp" or "unix"
	Address    string `json:"address"`
	For        string `json:"for"`
	Protection string `json:"protection"`
	Away       bool   `json:"away,omitempty"`       // other machines reach it
	Open       bool   `json:"open,omitempty"`       // who reaches it is let in
	Unexpected bool   `json:"unexpected,omitempty"` // the process has it, and the node does not know it
}

// Certificate is one that the node shows or trusts.
type Certificate struct {
	For    string    `json:"for"`
	Serial string    `json:"serial"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
}

// SecretKey is a secret that the node has, without it.
type SecretKey struct {
	For   string    `json:"for"`
	Since time.Time `json:"since"`           // zero: not known
	State string    `json:"state,omitempty"` // of a rotation under way
}

// Weakness is something to mend.
type Weakness struct {
	What    string `json:"what"`
	Mend    string `json:"mend"`
	Exposed bool   `json:"exposed,omitempty"` // other machines can make use of it
}

// RevokeRequest ends the certificates of a node.
type RevokeRequest struct {
	Node string `json:"node"` // its name or home
	Why  string `json:"why,omitempty"`
}

// RevokedNode answers a RevokeRequest.
type RevokedNode struct {
	Node   string `json:"node"`
	Home   string `json:"home"`
	Epoch  uint64 `json:"epoch"` // up to which its certificates count no more
	Bundle uint64 `json:"bundle"`
	Left   string `json:"left,omitempty"` // what this does not undo
}

// The kinds of key that are rotated.
const (
	RotateGossip = "gossip"
	RotateRoot   = "root"
)

// RotateRequest replaces a key of the cluster.
type RotateRequest struct {
	What    string        `json:"what"`
	Overlap time.Duration `json:"overlap,omitempty"` // of a root: for which the one before is trusted too
	Finish  bool          `json:"finish,omitempty"`  // of a root: the one before is trusted no more
}

// Rotating says how far the replacement is.
type Rotating struct {
	What   string   `json:"what"`
	Bundle uint64   `json:"bundle"`           // the trust bundle that says so
	Behind []string `json:"behind,omitempty"` // homes of nodes that do not follow it yet
}
