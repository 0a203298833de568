package shell

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"mobula/actors"
	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// traitor is a record that panics from some use on.
type traitor struct {
	gcs.HomeRecord
	uses *atomic.Int32
	good int32
}

func (r traitor) Bucket() gcs.Bucket {
	if r.uses.Add(1) > r.good {
		panic("it is never good")
	}
	return r.HomeRecord.Bucket()
}

// mute are tables that answer no write.
type mute struct{ Tables }

func (m mute) Do(ctx context.Context, e gcs.Effect) gcs.Answered {
	if _, writes := e.(gcs.Write); writes {
		<-ctx.Done()
		return gcs.Answered{}
	}
	return m.Tables.Do(ctx, e)
}

// A request that brings its cores down is answered with an error, whether as it comes, as a core begins with it, or with the answer to its call. The others go on.
func TestARequestThatNoCoreSurvives(t *testing.T) {
	for _, tc := range []struct {
		name     string
		tables   Tables
		good     int32
		fault    actors.Fault
		restarts uint64
	}{
		{"as it comes", NewMemory(), 0, actors.Fault{}, 2},
		{"as a core begins", mute{NewMemory()}, 1, actors.Fault{Nth: 1, MessageType: "gcs.Request", Action: actors.PanicMidStep}, 3},
		{"with its answer", NewMemory(), 1 << 20, actors.Fault{Times: 2, MessageType: "gcs.Answered", Action: actors.PanicMidStep}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sys := actors.NewSystem(actors.Config{})
			defer stopTest(t, sys)
			g, err := Start(sys, Config{Tables: tc.tables, Node: "n1"})
			if err != nil {
				t.Fatal(err)
			}
			ctx := testkit.Within(t)
			answer := make(chan error, 1)
			if tc.fault.Times > 0 {
				sys.Faults.Inject(tc.fault)
			}
			g.Ask(gcs.Put{Record: traitor{homeRecord(3), new(atomic.Int32), tc.good}}, func(r gcs.Reply) { answer <- r.Err })
			if tc.fault.Nth > 0 {
				if _, err := g.Call(ctx, gcs.List{Bucket: gcs.Nodes}); err != nil { // the request is stepped
					t.Fatal(err)
				}
				sys.Faults.Inject(tc.fault)
			}
			if _, err := g.Call(ctx, gcs.List{Bucket: gcs.Homes}); err != nil {
				t.Errorf("another request: %v", err)
			}
			select {
			case err := <-answer:
				if !errors.Is(err, errs.ErrComponentFailed) {
					t.Errorf("the request is answered with %v", err)
				}
			case <-ctx.Done():
				t.Fatal("nobody answers the request")
			}
			testkit.Eventually(t, "the core that follows", func() bool { return sys.Restarts()["gcs"] == tc.restarts })
		})
	}
}
