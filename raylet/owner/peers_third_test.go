package owner

import (
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// farthest is a job of a third home, and thirdPut an object of it.
var (
	farthest = ids.JobID(ids.Home(4).ID(2))
	thirdPut = ids.RootTask(farthest, 1).Put(1)
)

func (s *script) fromThird(m any) {
	s.t.Helper()
	if w, ok := m.(wire.Msg); ok {
		m = Words{w}
	}
	s.step(FromOwner{farthest, m.(PeerMsg)})
}

func (s *script) wantSaidTo(job ids.JobID, want ...string) {
	s.t.Helper()
	if got := s.saidTo(job); !slices.Equal(got, want) {
		s.t.Fatalf("the owner of job %v is told %q, want %q", job, got, want)
	}
}

// token gives that of the Sync that the step asked for.
func (s *script) token() uint64 {
	s.t.Helper()
	m := told[Sync](s)
	if len(m) == 0 {
		s.t.Fatalf("nothing is asked: %q, %q", s.saidTo(abroad), s.saidTo(farthest))
	}
	return m[len(m)-1].Token
}

// holding is a value with a reference to an object of a third home.
func holding(id ids.ObjectID) *wire.Resolved {
	return &wire.Resolved{ID: id, Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("v"), Refs: []ids.ObjectID{thirdPut}}, Size: 1}}
}

// gotThird has the driver get a value of another home with a reference to a third home's object, and keep that alone. It gives the token of the question.
func (s *script) gotThird() uint64 {
	s.t.Helper()
	s.from(driver, &wire.AddRef{ID: abroadPut}, &wire.Get{ID: abroadPut})
	s.fromAbroad(holding(abroadPut))
	s.wantSaidTo(farthest, "AddRef", "Sync")
	token := s.token()
	s.from(driver, &wire.AddRef{ID: thirdPut}, &wire.Release{IDs: []ids.ObjectID{abroadPut}})
	return token
}

// Who has got a reference to an object of a third home out of a value of another home keeps the value until the third home knows: its owner holds the object so long.
func TestAValueIsHeldUntilAThirdHomeKnows(t *testing.T) {
	for name, answer := range map[string]func(s *script, token uint64){
		"it answers":    func(s *script, token uint64) { s.fromThird(Synced{token}) },
		"it ends":       func(s *script, _ uint64) { s.fromThird(JobGone{}) },
		"no way there":  func(s *script, _ uint64) { s.fromThird(Unreachable{errs.New(errs.CodeVersion, "too old")}) },
		"it comes back": func(s *script, _ uint64) { s.fromThird(Rejoined{}); s.fromThird(Synced{s.token()}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, Config{})
			token := s.gotThird()
			if s.wantSaidTo(abroad); s.c.Validate() != nil {
				t.Error(s.c.Validate())
			}
			s.fromThird(Synced{token + 1}) // of a core before
			s.wantSaidTo(abroad)
			answer(s, token)
			s.wantSaidTo(abroad, "Release")
			s.from(driver, &wire.Release{IDs: []ids.ObjectID{thirdPut}})
			s.wantEmpty()
		})
	}
}

// A value is not held for what lies on its owner's own home, or on this one: the order of messages does it.
func TestNobodyIsAskedBetweenTwoHomes(t *testing.T) {
	s := newScript(t, Config{})
	mine, theirs := s.root.Put(1), ids.RootTask(ids.JobID(ids.Home(3).ID(7)), 1).Put(1)
	s.from(driver, &wire.PutValue{ID: mine}, &wire.AddRef{ID: abroadPut}, &wire.Get{ID: abroadPut})
	v := holding(abroadPut)
	v.Result.Value.Refs = []ids.ObjectID{mine, theirs}
	s.fromAbroad(v)
	s.wantSaidTo(theirs.Job(), "AddRef")
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{abroadPut, mine}})
	s.wantSaidTo(abroad, "Release")
	s.wantEmpty()
}

// A rebuilt core, which does not know what it held for others, lets go of nothing of another home before a third one knows what it has there.
func TestARebuiltCoreBorrowsBeforeItLetsGo(t *testing.T) {
	s := newScript(t, Config{})
	s.gotThird()
	s.rebuildWith(Restored{Epoch: 7, Jobs: []ids.JobID{abroad, farthest}})
	h := holds(7)
	h.Handles = []ids.ObjectID{thirdPut}
	s.from(driver, h)
	s.from(worker, holds(7))
	s.from(worker2, holds(7))
	s.wantSaidTo(abroad)
	if got := s.saidTo(farthest); !slices.Equal(got[len(got)-2:], []string{"AddRef", "Sync"}) {
		t.Fatalf("the third is told %q", got)
	}
	s.fromAbroad(&wire.Resync{Component: wire.ComponentOwner, Epoch: 3}) // it was rebuilt too
	s.wantSaidTo(abroad)
	s.fromThird(&wire.Resync{Component: wire.ComponentOwner, Epoch: 3})
	s.wantSaidTo(farthest, "AddRef", "Sync")
	s.fromThird(Synced{s.token()})
	s.wantSaidTo(abroad, "holds 0")
	s.wantSaidTo(farthest, "holds 1")
	s.fromAbroad(&wire.Holdings{Component: wire.ComponentOwner})
	s.fromThird(&wire.Holdings{Component: wire.ComponentOwner})
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{thirdPut}})
	s.wantEmpty()
}

func (s *script) over() bool {
	return slices.ContainsFunc(s.out, func(e Effect) bool { return e.Kind == JobEnded })
}

// A job that ends waits until others have what they have found in its values: they say so, or are gone, or it has waited long enough.
func TestAJobThatEndsWaitsForWhoGotReferencesOfAThirdHome(t *testing.T) {
	for name, answer := range map[string]func(s *script){
		"it has them":   func(s *script) { s.fromAbroad(Left{}) },
		"it is gone":    func(s *script) { s.fromAbroad(JobGone{}) },
		"it never says": func(s *script) { s.pass(leavePatience) },
		"it was rebuilt": func(s *script) {
			s.fromAbroad(&wire.Resync{})
			s.wantSaidTo(abroad, "Leaving", "holds 0")
			s.fromAbroad(Left{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, Config{})
			box := s.root.Put(1)
			s.from(driver, &wire.PutValue{ID: box, Value: wire.Value{Refs: []ids.ObjectID{thirdPut}}})
			s.fromAbroad(&wire.AddRef{ID: box})
			s.step(ClientGone{Client: driver})
			s.wantSaidTo(abroad, "Leaving")
			s.fromAbroad(&wire.Get{ID: box})
			if s.wantSaidTo(abroad, "Leaving"); s.over() {
				t.Fatal("the job is over, and another has just got a reference from it")
			}
			if answer(s); !s.over() {
				t.Error("it goes on")
			}
		})
	}
}

// Who hears that a job ends loses what it waits for there, and answers when nothing that it found in the job's values is on its way.
func TestAJobThatEndsIsAnsweredWhenNothingIsOnItsWay(t *testing.T) {
	s := newScript(t, Config{})
	second := ids.RootTask(abroad, 1).Put(2)
	token := s.gotThird()
	s.from(driver, &wire.AddRef{ID: second}, &wire.Get{ID: second})
	s.fromAbroad(Leaving{})
	if r := sent[*wire.Resolved](s, driver); len(r) != 1 || r[0].Result.Err.Code != errs.CodeOwnerDied {
		t.Fatalf("the driver gets %+v", r)
	}
	s.wantSaidTo(abroad)
	s.fromThird(Synced{token})
	if got := s.saidTo(abroad); !slices.Contains(got, "Left") {
		t.Fatalf("the job that ends is told %q", got)
	}
	s.fromAbroad(Leaving{})
	s.wantSaidTo(abroad, "Left")
	s.from(driver, &wire.Release{IDs: []ids.ObjectID{thirdPut, second}})
	s.wantEmpty()
}
