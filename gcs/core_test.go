package gcs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// fakeServer is the least a key-value store must do: compare-and-set by revision.
type fakeServer struct {
	rows map[string]fakeRow
	rev  uint64
}

type fakeRow struct {
	rec Record
	rev uint64
}

func (s *fakeServer) do(e Effect) Answered {
	switch e := e.(type) {
	case Write:
		cur := s.rows[e.Record.Key()]
		if e.Revision >= 0 && cur.rev != uint64(e.Revision) {
			return Answered{ID: e.ID, Wrote: true, Conflict: true}
		}
		s.rev++
		s.rows[e.Record.Key()] = fakeRow{e.Record, s.rev}
		return Answered{ID: e.ID, Wrote: true, Revision: s.rev}
	case Delete:
		if e.Revision >= 0 && s.rows[e.Key].rev != uint64(e.Revision) {
			return Answered{ID: e.ID, Wrote: true, Conflict: true}
		}
		delete(s.rows, e.Key)
		return Answered{ID: e.ID, Wrote: true}
	case Read:
		r := s.rows[e.Key]
		return Answered{ID: e.ID, Record: r.rec, Revision: r.rev}
	}
	panic(fmt.Sprintf("%T", e))
}

func actor(name, id string) ActorRecord {
	return ActorRecord{Namespace: "prod", Name: name, Actor: id, Type: "app/counter"}
}

// Whatever the order in which the server answers, one name has one holder, every request
// is answered once, and the table names the actor that was granted the name.
func TestOneNameOneHolder(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		srv := &fakeServer{rows: make(map[string]fakeRow)}
		core := NewCore()
		var queue []Effect
		replies := make(map[uint64]Reply)
		asked := make(map[uint64]Op)
		holders := make(map[string]bool)
		take := func(effects []Effect) {
			for _, e := range effects {
				r, ok := e.(Reply)
				if !ok {
					queue = append(queue, e)
					continue
				}
				if _, twice := replies[r.ID]; twice {
					t.Fatalf("request %d answered twice", r.ID)
				}
				replies[r.ID] = r
				switch op := asked[r.ID].(type) {
				case Claim:
					if r.Err == nil {
						holders[op.Actor.Actor] = true
					}
				case Free:
					delete(holders, op.Actor)
				}
				if len(holders) > 1 {
					t.Fatalf("%d holders of one name: %v", len(holders), holders)
				}
			}
		}
		id := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(queue) > 0 && rapid.Bool().Draw(t, "answer") {
				i := rapid.IntRange(0, len(queue)-1).Draw(t, "which")
				e := queue[i]
				queue = append(queue[:i:i], queue[i+1:]...)
				take(core.Step(0, srv.do(e)))
				continue
			}
			id++
			who := fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "who"))
			var op Op = Claim{actor("hits", who)}
			if rapid.Bool().Draw(t, "free") {
				op = Free{Namespace: "prod", Name: "hits", Actor: who}
				if holders[who] {
					delete(holders, who) // it gives up from now on
				}
			}
			asked[id] = op
			take(core.Step(0, Request{id, op}))
		}
		for len(queue) > 0 {
			e := queue[0]
			queue = queue[1:]
			take(core.Step(0, srv.do(e)))
		}
		if len(replies) != len(asked) || len(core.pending) != 0 {
			t.Fatalf("%d of %d requests answered, %d still pending", len(replies), len(asked), len(core.pending))
		}
	})
}

func TestClaimOfATakenNameNamesTheHolder(t *testing.T) {
	srv := &fakeServer{rows: make(map[string]fakeRow)}
	core := NewCore()
	run := func(id uint64, op Op) Reply {
		effects := core.Step(0, Request{id, op})
		for {
			if r, ok := effects[0].(Reply); ok {
				return r
			}
			effects = core.Step(0, srv.do(effects[0]))
		}
	}
	if r := run(1, Claim{actor("hits", "a")}); r.Err != nil {
		t.Fatalf("a free name: %v", r.Err)
	}
	if r := run(2, Claim{actor("hits", "a")}); r.Err != nil {
		t.Errorf("claimed again by its holder: %v", r.Err)
	}
	r := run(3, Claim{actor("hits", "b")})
	if !errors.Is(r.Err, errs.ErrNameTaken) || len(r.Records) != 1 || r.Records[0].(ActorRecord).Actor != "a" {
		t.Errorf("a taken name: %+v", r)
	}
	up := actor("hits", "a")
	up.State = ActorAlive
	if r := run(4, Update{up}); r.Err != nil {
		t.Errorf("update by the holder: %v", r.Err)
	}
	if r := run(5, Update{actor("hits", "b")}); !errors.Is(r.Err, errs.ErrNameTaken) {
		t.Errorf("update by another: %v", r.Err)
	}
	if r := run(6, Free{"prod", "hits", "a"}); r.Err != nil {
		t.Errorf("free: %v", r.Err)
	}
	if r := run(7, Lookup{Actors, ActorKey("prod", "hits")}); !errors.Is(r.Err, errs.ErrNotFound) {
		t.Errorf("after free: %+v", r)
	}
	if r := run(8, Update{actor("hits", "a")}); !errors.Is(r.Err, errs.ErrNotFound) {
		t.Errorf("update after free: %v", r.Err)
	}
}

// A claim whose outcome the server does not report in time fails, and the name is free, even if it was written.
func TestAClaimThatFailsLeavesTheNameFree(t *testing.T) {
	srv := &fakeServer{rows: make(map[string]fakeRow)}
	core := NewCore()
	slow := errors.New("no answer in time")
	effects := core.Step(0, Request{1, Claim{actor("hits", "a")}})
	late := srv.do(effects[0])
	effects = core.Step(0, Answered{ID: late.ID, Wrote: true, Err: slow})
	for calls := 0; ; calls++ {
		if r, ok := effects[0].(Reply); ok {
			if !errors.Is(r.Err, slow) || len(core.pending) != 0 {
				t.Errorf("answered %+v, %d pending", r, len(core.pending))
			}
			break
		}
		if calls > 5 {
			t.Fatal("it has no end")
		}
		effects = core.Step(0, srv.do(effects[0]))
	}
	if row, taken := srv.rows[ActorKey("prod", "hits")]; taken {
		t.Errorf("the name is held for an actor that there is not: %+v", row)
	}
}

func TestKeysAreLegalAndDistinct(t *testing.T) {
	seen := make(map[string]string)
	long := strings.Repeat("a", longPart)
	for _, s := range []string{"a", "a.b", "", "=61", "ä", "a b", "A", "a*", ">", "61", long, long + "a", long + "b", long + ".", strings.Repeat(long, 100), plain(long + ".")} {
		k := encode(s)
		if len(k) > longPart {
			t.Errorf("the key of %d bytes has %d", len(s), len(k))
		}
		if other, dup := seen[k]; dup {
			t.Errorf("%q and %q share the key %q", s, other, k)
		}
		seen[k] = s
		for _, c := range k {
			if c == '.' || c == '*' || c == '>' || c == ' ' || c > 126 {
				t.Errorf("key %q of %q has %q", k, s, c)
			}
		}
	}
}
