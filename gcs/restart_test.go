package gcs

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// A core that is made anew in the middle of requests steps them again, while the server still answers
// what the one before had asked: in order, for the calls are made one after the other. An actor that is told that
// it has a name has it in the table, and a confirmed update is there.
func TestAnswersToTheCoreBeforeAreNoAnswersToThisOne(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		srv := &fakeServer{rows: make(map[string]fakeRow)}
		core := NewCore()
		var calls []Effect
		open := make(map[uint64]Request)
		take := func(effects []Effect) {
			for _, e := range effects {
				r, ok := e.(Reply)
				if !ok {
					calls = append(calls, e)
					continue
				}
				q, asked := open[r.ID]
				if !asked {
					t.Fatalf("request %d is answered twice", r.ID)
				}
				delete(open, r.ID)
				row, _ := srv.rows[ActorKey("prod", "hits")].rec.(ActorRecord)
				switch op := q.Op.(type) {
				case Claim:
					if r.Err == nil && row.Actor != op.Actor.Actor {
						t.Fatalf("actor %s is told that it has the name, which %q has", op.Actor.Actor, row.Actor)
					}
				case Update:
					if r.Err == nil && row.Actor != op.Actor.Actor {
						t.Fatalf("an update of actor %s is confirmed, and the name is %q's", op.Actor.Actor, row.Actor)
					}
					if r.Err == nil && row.State != ActorAlive {
						t.Fatalf("an update is confirmed and not there: %+v", row)
					}
				case Free:
					if r.Err == nil && row.Actor == op.Actor {
						t.Fatalf("actor %s is told that it gave the name up, and has it", row.Actor)
					}
				}
			}
		}
		id := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what == 0: // the core is made anew
				core = NewCore()
				for i := uint64(1); i <= id; i++ {
					if q, ok := open[i]; ok {
						take(core.Step(0, q))
					}
				}
			case what <= 3 && len(calls) > 0:
				e := calls[0]
				calls = calls[1:]
				take(core.Step(0, srv.do(e)))
			default:
				if len(open) > 0 {
					break // one at a time, so that the table says what each answer is to be
				}
				a := actor("hits", fmt.Sprint(rapid.IntRange(1, 2).Draw(t, "who")))
				op := Op(Claim{a})
				switch rapid.IntRange(0, 2).Draw(t, "op") {
				case 1:
					a.State = ActorAlive
					op = Update{a}
				case 2:
					op = Free{Namespace: a.Namespace, Name: a.Name, Actor: a.Actor}
				}
				id++
				open[id] = Request{id, op}
				take(core.Step(0, open[id]))
			}
		}
		for len(calls) > 0 {
			e := calls[0]
			calls = calls[1:]
			take(core.Step(0, srv.do(e)))
		}
		if len(open) > 0 {
			t.Fatalf("without an answer: %v", open)
		}
	})
}
