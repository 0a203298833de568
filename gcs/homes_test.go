package gcs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"mobula/actors"
	"mobula/internal/home/register"
	"mobula/internal/home/register/registertest"
)

// losing are tables that lose the answer to a write when they are told to.
type losing struct {
	Tables
	lose *atomic.Bool
}

func (l losing) Do(ctx context.Context, e Effect) Answered {
	a := l.Tables.Do(ctx, e)
	if _, writes := e.(Write); writes && l.lose.CompareAndSwap(true, false) {
		return Answered{ID: a.ID, Wrote: true, Err: errors.New("no answer in time")}
	}
	return a
}

func TestTheControlPlaneIsARegisterOfHomes(t *testing.T) {
	try := func(t *testing.T, tables Tables) {
		t.Helper()
		sys := actors.NewSystem(actors.Config{})
		defer stopTest(t, sys)
		var lose atomic.Bool
		g, err := Start(sys, Config{Tables: losing{tables, &lose}, Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		registertest.Conform(t, Register{GCS: g, Node: "n1"}, func() { lose.Store(true) })
		records, err := g.Call(t.Context(), Lookup{Bucket: Homes, Key: "0"})
		if err != nil || len(records) != 1 || records[0].(HomeRecord).Node != "n1" {
			t.Errorf("who answers for a home: %+v, %v", records, err)
		}
	}
	t.Run("NATS", func(t *testing.T) {
		srv, nc, tables := openTest(t, t.TempDir())
		defer srv.Close()
		defer nc.Close()
		try(t, tables)
	})
	t.Run("memory", func(t *testing.T) { try(t, NewMemory()) })
}

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
