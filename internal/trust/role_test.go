package trust

import (
	"slices"
	"testing"
)

// Each denial, and what would follow without it. What is not here is allowed.
func TestEachRoleIsDeniedWhatItDoesNotNeed(t *testing.T) {
	denied := map[Role]map[Action]string{
		Data: {
			WriteAny:      "one node that was broken into takes the names of others, and fences them",
			CarryTables:   "it votes on the tables, or withholds what it was sent to keep",
			ReadAuthority: "it collects sealed keys and hashes of tokens, to open when a secret leaks",
			Issue:         "it makes itself any node",
			MakeTokens:    "it lets friends in",
			Revoke:        "it shuts others out",
			RotateKeys:    "it shuts all others out",
		},
		Driver: {
			RunWork:       "a program that joined from elsewhere is given the data and functions of others",
			WriteAny:      "as of a data node",
			CarryTables:   "as of a data node, and it comes and goes",
			ReadAuthority: "as of a data node",
			Issue:         "as of a data node",
			MakeTokens:    "as of a data node",
			Revoke:        "as of a data node",
			RotateKeys:    "as of a data node",
		},
		ControlPlane: {},
		None: {
			Talk: "a task speaks for its node", Transfer: "a task takes any object", Gossip: "a task announces nodes", ReadTables: "a task learns all names",
			WriteOwn: "a task takes names", Renew: "a task makes its node's key its own", RunWork: "a worker gets its work from its node", WriteAny: "as of a data node",
			CarryTables: "as of a data node", ReadAuthority: "as of a data node", Issue: "as of a data node", MakeTokens: "as of a data node",
			Revoke: "as of a data node", RotateKeys: "as of a data node",
		},
	}
	actions := slices.Concat(ofAll, ofData, ofControlPlane)
	if len(actions) != 14 || len(denied[None]) != len(actions) {
		t.Fatalf("%d actions, of which a worker is denied %d", len(actions), len(denied[None]))
	}
	for role, of := range denied {
		for _, a := range actions {
			if why := of[a]; Allowed(role, a) != (why == "") {
				t.Errorf("%q may %s: %v. Otherwise %s", role, a, Allowed(role, a), why)
			}
		}
		if Allowed(role, "an action of a later release") || Allowed(role, "") {
			t.Errorf("%q may do what nobody has named", role)
		}
		if role.Known() != (role != None) {
			t.Errorf("%q is known: %v", role, role.Known())
		}
	}
	if Role("admin").Known() || Allowed("admin", Talk) {
		t.Error("a role that does not exist may do something")
	}
}
