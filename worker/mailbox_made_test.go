package worker

import (
	"context"
	"slices"
	"testing"

	"mobula/internal/client"
	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/registry"
	"mobula/wire"
)

// submits is a method that submits a task, and ends when it is cancelled.
func (s *straight) submits() (opts *wire.TaskOptions, made chan struct{}) {
	made = make(chan struct{}, 8)
	task := s.handle("made", wire.TaskNormal, ok)
	return s.handle("submits", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		tc := client.FromContext(ctx)
		hs, err := s.c.Submit(ctx, &wire.TaskSpec{ID: tc.NextTask(), Parent: tc.Base(), Opts: task})
		if err != nil {
			return nil, nil, err
		}
		defer hs[0].Release()
		made <- struct{}{}
		<-ctx.Done()
		return nil, nil, context.Cause(ctx)
	}), made
}

// The owner hears of a straight call that makes something, and of its end; what it has made is cancelled with it where that is asked for, before it ends.
func TestWhatAStraightCallMakesIsCancelledWithIt(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	opts, made := s.submits()
	told := func(a *asked, log []wire.Msg) (kinds []string) {
		for _, m := range log {
			switch m := m.(type) {
			case *wire.Runs:
				if m.Task == a.spec.ID && m.Actor == s.actor {
					kinds = append(kinds, "runs")
				}
			case *wire.CancelMade:
				if m.Task == a.spec.ID && m.Wish == (wire.Wish{Recursive: true, Insist: true}) {
					kinds = append(kinds, "cancel")
				}
			case *wire.Ran:
				if m.Task == a.spec.ID {
					kinds = append(kinds, "ran")
				}
			case *wire.Submit:
				if m.Spec.Parent == a.spec.ID {
					kinds = append(kinds, "submit")
				}
			}
		}
		return kinds
	}
	want := func(what string, a *asked, kinds ...string) {
		t.Helper()
		got := await(s.peer, "what is told of "+what, func(log []wire.Msg) ([]string, bool) {
			got := told(a, log)
			return got, len(got) == len(kinds)
		})
		if !slices.Equal(got, kinds) {
			t.Errorf("of %s is told %v, want %v", what, got, kinds)
		}
	}
	alone := s.ask(opts)
	<-made
	alone.k.Cancel(direct.Wish{})
	alone.fails(errs.CodeCancelled)
	want("a call that is cancelled alone", alone, "runs", "submit", "ran")
	deep := s.ask(opts)
	<-made
	deep.k.Cancel(direct.Wish{Recursive: true, Insist: true})
	deep.fails(errs.CodeCancelled)
	want("one that is cancelled with all", deep, "runs", "submit", "cancel", "ran")
	orphan := s.ask(opts)
	<-made
	s.e.Deliver([]wire.Msg{&wire.Unwanted{Instance: s.lease, Channel: 1, No: 3, Wish: wire.Wish{Recursive: true, Insist: true}}})
	orphan.fails(errs.CodeCancelled)
	want("one that the owner ends", orphan, "runs", "submit", "cancel", "ran")
	silent := s.ask(s.handle("ok", wire.TaskActorCall, ok))
	silent.results()
	want("one that makes nothing", silent)
}
