package gcs

import (
	"errors"
	"testing"

	"mobula/internal/home/register"
)

// A write of a home that fails twice is an error, and asking again for the same life is granted.
func TestABeginThatFails(t *testing.T) {
	srv := &fakeServer{rows: make(map[string]fakeRow)}
	core := NewCore()
	slow := errors.New("no answer in time")
	claim := register.Claim{Identity: "me", Life: "first"}
	effects := core.Step(0, Request{1, Begin{Claim: claim, Node: "n1"}})
	effects = core.Step(0, Answered{ID: effects[0].(Write).ID, Wrote: true, Err: slow})
	effects = core.Step(0, srv.do(effects[0]))
	effects = core.Step(0, Answered{ID: effects[0].(Write).ID, Wrote: true, Err: slow})
	if r, ok := effects[0].(Reply); !ok || !errors.Is(r.Err, slow) || len(core.pending) != 0 {
		t.Fatalf("answered %+v", effects)
	}
	effects = core.Step(0, Request{2, Begin{Claim: claim, Node: "n1"}})
	effects = core.Step(0, srv.do(effects[0]))
	if r, ok := effects[0].(Reply); !ok || r.Err != nil || r.Records[0].(HomeRecord).Node != "n1" {
		t.Fatalf("answered %+v", effects)
	}
}
