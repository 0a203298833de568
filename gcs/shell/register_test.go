package shell

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"mobula/actors"
	"mobula/gcs"
	"mobula/internal/home/register/registertest"
)

// losing are tables that lose the answer to a write when they are told to.
type losing struct {
	Tables
	lose *atomic.Bool
}

func (l losing) Do(ctx context.Context, e gcs.Effect) gcs.Answered {
	a := l.Tables.Do(ctx, e)
	if _, writes := e.(gcs.Write); writes && l.lose.CompareAndSwap(true, false) {
		return gcs.Answered{ID: a.ID, Wrote: true, Err: errors.New("no answer in time")}
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
		records, err := g.Call(t.Context(), gcs.Lookup{Bucket: gcs.Homes, Key: "0"})
		if err != nil || len(records) != 1 || records[0].(gcs.HomeRecord).Node != "n1" {
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
