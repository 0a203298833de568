package trust

import "slices"

// Role is what a node is in its cluster. Its token says which one it gets, its certificate which one it has.
type Role string

// The roles. A worker has none: it gets no key of the cluster, and speaks with its own node only.
const (
	ControlPlane Role = "control-plane" // carries the tables and serves the authority
	Data         Role = "data"          // runs tasks and actors, and keeps objects
	Driver       Role = "driver"        // a node inside a program, which submits work and runs none of others
	None         Role = ""
)

// Known tells whether a node may have the role.
func (r Role) Known() bool { return r == ControlPlane || r == Data || r == Driver }

// Action is something that a node asks of another one.
type Action string

// The actions.
const (
	Talk       Action = "exchange messages with nodes"
	Transfer   Action = "move objects"
	Gossip     Action = "take part in the membership"
	ReadTables Action = "read the tables of nodes, homes and actors"
	WriteOwn   Action = "write rows of its own home"
	Renew      Action = "renew its own certificate"

	RunWork Action = "run the work of other nodes"

	WriteAny      Action = "write rows of other homes" // to fence a node is one of these
	CarryTables   Action = "carry the tables"          // and vote on them
	ReadAuthority Action = "read the authority's rows"
	Issue         Action = "issue certificates"
	MakeTokens    Action = "make tokens"
	Revoke        Action = "revoke certificates"
	RotateKeys    Action = "rotate the cluster's keys"
)

// ofAll is what each node may do, ofData what a node may besides that runs the work of others.
var (
	ofAll          = []Action{Talk, Transfer, Gossip, ReadTables, WriteOwn, Renew}
	ofData         = []Action{RunWork}
	ofControlPlane = []Action{WriteAny, CarryTables, ReadAuthority, Issue, MakeTokens, Revoke, RotateKeys}
)

// Allowed tells whether a role may do something. Whoever is asked for it decides so, by the certificate of who asks.
func Allowed(r Role, a Action) bool {
	switch r {
	case ControlPlane:
		return slices.Contains(ofControlPlane, a) || Allowed(Data, a)
	case Data:
		return slices.Contains(ofData, a) || Allowed(Driver, a)
	case Driver:
		return slices.Contains(ofAll, a)
	}
	return false
}
