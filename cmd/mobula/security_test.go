package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/errs"
	"mobula/internal/state"
)

// protected is a node of a cluster as its check shows it.
func protected() state.NodeSecurity {
	day := func(n int) time.Time { return time.Unix(1_700_000_000, 0).Add(time.Duration(n) * 24 * time.Hour).UTC() }
	return state.NodeSecurity{
		Node: "n1", Home: "0", Cluster: "abc", Role: "control-plane", Bundle: 7, Revoked: 2,
		Listeners: []state.Listening{
			{Network: "unix", Address: "/run/node.sock", For: "programs", Protection: "this user's alone"},
			{Network: "tcp", Address: "127.0.0.1:9464", For: "metrics", Protection: "loopback only, without a token", Open: true},
			{Network: "udp", Address: "10.0.0.1:7711", For: "membership", Protection: "AES-256-GCM", Away: true},
		},
		Certificates: []state.Certificate{{For: "this node", Serial: "a1", From: day(0), Until: day(7)}, {For: "the cluster's authority", Serial: "b2", From: day(-10), Until: day(3640)}},
		Keys:         []state.SecretKey{{For: "the gossip, generation 1", Since: day(-10), State: "generation 2 takes its place"}},
		Tokens:       map[string]int{"driver": 1, "data": 2},
		Weak:         []state.Weakness{{What: "every user can read the metrics", Mend: "leave metrics.address out"}},
	}
}

// A check that finds something weak ends well; one that finds something open to other machines, or misses a node, does not.
func TestSecurityCheck(t *testing.T) {
	cluster := func(weak ...state.Weakness) []state.NodeSecurity {
		first := protected()
		first.Weak = append(first.Weak, weak...)
		return []state.NodeSecurity{first, {Node: "alone", Home: "1", Listeners: protected().Listeners[:1]}}
	}
	says := func(report state.SecurityReport) string {
		return fakeNode(t, map[string]any{state.MethodSecurityCheck: report})
	}
	addr := says(state.SecurityReport{Nodes: cluster()})
	code, out, errOut := command(t, nil, "security", "check", "--address", addr)
	if code != exitDone || errOut != "" {
		t.Errorf("exit %d, %s", code, errOut)
	}
	golden(t, "security-check", out)
	code, out, _ = command(t, nil, "security", "check", "--json", "--address", addr)
	var got state.SecurityReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone || len(got.Nodes) != 2 || len(got.Nodes[0].Listeners) != 3 {
		t.Errorf("exit %d, %v, %s", code, err, out)
	}

	addr = says(state.SecurityReport{Nodes: cluster(state.Weakness{What: "tcp 10.0.0.1:9000 is open", Mend: "close it", Exposed: true})})
	code, out, errOut = command(t, nil, "security", "check", "--address", addr)
	if code != exitFailed || !strings.Contains(out, "EXPOSED: tcp 10.0.0.1:9000 is open") || !strings.Contains(errOut, "1 weaknesses are open") {
		t.Errorf("exit %d, %s, %s", code, out, errOut)
	}
	addr = says(state.SecurityReport{Nodes: cluster(), Unreachable: []state.Unreachable{{Node: "n3", Why: "says nothing"}}})
	code, _, errOut = command(t, nil, "security", "check", "--address", addr)
	if code != exitFailed || !strings.Contains(errOut, "n3") || !strings.Contains(errOut, "1 nodes were not checked") {
		t.Errorf("exit %d, %s", code, errOut)
	}
}

// What the commands that change something ask for, and what they show.
func TestSecurityChanges(t *testing.T) {
	questions := make(chan string, 8)
	note := func(v any, answer any) func([]byte) any {
		return func(body []byte) any {
			if err := cbor.Unmarshal(body, v); err != nil {
				return err
			}
			text, err := json.Marshal(v)
			if err != nil {
				return err
			}
			questions <- string(text)
			return answer
		}
	}
	addr := fakeNode(t, map[string]any{
		state.MethodRevoke: note(new(state.RevokeRequest), state.RevokedNode{Node: "n3", Home: "3", Epoch: 2, Bundle: 9, Left: "it knows the secret"}),
		state.MethodRotate: note(new(state.RotateRequest), state.Rotating{What: "root", Bundle: 10, Behind: []string{"4"}}),
	})
	for _, c := range []struct{ args, asked, says string }{
		{"security revoke n3 --why lost", `{"node":"n3","why":"lost"}`, "node n3, home 3, is shut out: its certificates up to life 2 count no more (trust bundle 9)\nit knows the secret"},
		{"security rotate gossip", `{"what":"gossip"}`, "trust bundle 10 tells the nodes; not yet with it: 4"},
		{"security rotate root", `{"what":"root","overlap":3456000000000000}`, "trust bundle 10"},
		{"security rotate root --finish", `{"what":"root","overlap":3456000000000000,"finish":true}`, "trust bundle 10"},
	} {
		code, out, errOut := command(t, nil, append(strings.Fields(c.args), "--address", addr)...)
		var asked []string
		for range len(questions) {
			asked = append(asked, <-questions)
		}
		if code != exitDone || len(asked) != 1 || asked[0] != c.asked || !strings.HasPrefix(out, c.says) {
			t.Errorf("%s: exit %d, asks %v, says %s%s", c.args, code, asked, out, errOut)
		}
	}
	no := fakeNode(t, map[string]any{state.MethodRevoke: errs.New(errs.CodeNotFound, "the cluster has no node n9")})
	if code, _, errOut := command(t, nil, "security", "revoke", "n9", "--address", no); code != exitNotFound || !strings.Contains(errOut, "n9") {
		t.Errorf("exit %d, %s", code, errOut)
	}
	if code, _, _ := command(t, nil, "security", "revoke"); code != exitUsage {
		t.Errorf("without a node: exit %d", code)
	}
}
