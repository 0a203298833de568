package directory

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

const (
	mine  ids.JobID = 1
	other ids.JobID = 2
)

func actorOf(job ids.JobID, n uint64) ids.ActorID {
	return ids.ActorID(ids.Derive(ids.RootTask(job, 1), n))
}

func named(name string) *wire.TaskOptions {
	return &wire.TaskOptions{Namespace: "prod", ActorName: name, Func: "app/counter"}
}

func alive(id ids.ActorID, name string) Publish {
	return Publish{Place{Actor: id, State: actor.Alive, Worker: 7, Lease: 9, Opts: named(name)}}
}

// steps gives a core events and compares the effects of the last.
func steps(t *testing.T, c *Core, want []Effect, evs ...Event) {
	t.Helper()
	var got []Effect
	for _, ev := range evs {
		got = append([]Effect(nil), c.Step(0, ev)...)
	}
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("the last step asks for\n%+v\nwant\n%+v", got, want)
	}
}

func newCore() *Core {
	c := New(0, "n1")
	c.Step(0, JobBegan{mine})
	c.Step(0, JobBegan{other})
	return c
}

// A name is claimed in the table, and the owner is told the outcome.
func TestClaim(t *testing.T) {
	c, a := newCore(), actorOf(mine, 1)
	m := Claim{Job: mine, Actor: a, Opts: named("hits")}
	steps(t, c, []Effect{ClaimRow{m}}, m)
	steps(t, c, []Effect{ToOwner{mine, NameClaimed{Actor: a}}}, Claimed{Claim: m})

	b := Claim{Job: other, Actor: actorOf(other, 1), Opts: named("hits")}
	taken := errs.New(errs.CodeNameTaken, "it is")
	steps(t, c, []Effect{ToOwner{other, NameClaimed{Actor: b.Actor, Err: taken}}}, b, Claimed{Claim: b, Holder: a, Err: taken})
	get := b
	get.Opts = named("hits")
	get.Opts.GetIfExists = true
	steps(t, c, []Effect{ToOwner{other, NameClaimed{Actor: b.Actor, Existing: a}}}, get, Claimed{Claim: get, Holder: a, Err: taken})
}

// A claim of which it is not known whether it was written is given up in the table when its owner says so, until that is done; the name's next claim comes after
// it. An owner whose actor has the name, by a claim that it had made of an earlier core, says nothing.
func TestAClaimThatMayHaveBeenWrittenIsFreed(t *testing.T) {
	c, a := newCore(), actorOf(mine, 1)
	m := Claim{Job: mine, Actor: a, Opts: named("hits")}
	silent := errs.New(errs.CodeDeadline, "no answer")
	failed := Claimed{Claim: m, Err: silent}
	told := []Effect{ToOwner{mine, NameClaimed{Actor: a, Err: silent}}, ToOwner{mine, NameHeld{Actor: a, Opts: m.Opts}}}
	free := FreeRow{Name: Name{"prod", "hits"}, Actor: a}
	steps(t, c, told, m, failed)
	steps(t, c, []Effect{free}, Release{Actor: a, Opts: m.Opts})
	steps(t, c, []Effect{Warn{What: "an actor's name could not be given up yet", Row: free, Err: silent}, After{D: freeAgain, Ev: FreeAgain{free}}}, Freed{FreeRow: free, Err: silent})
	steps(t, c, []Effect{free}, FreeAgain{free})
	steps(t, c, nil, Freed{FreeRow: free})

	next := Claim{Job: other, Actor: actorOf(other, 1), Opts: named("hits")}
	steps(t, c, nil, m, failed, Release{Actor: a}, next)
	steps(t, c, []Effect{ClaimRow{next}}, Freed{FreeRow: free})

	steps(t, c, told, m, m, Claimed{Claim: m}, failed)

	steps(t, c, []Effect{free}, JobEnded{mine})
	steps(t, c, []Effect{free}, failed)
}

// Other jobs call an actor only on its job's home: of one elsewhere they are told that, whoever asked before or asks then.
func TestAnActorOnAnotherNodeIsOutOfReach(t *testing.T) {
	c, a := newCore(), actorOf(mine, 1)
	steps(t, c, []Effect{ToOwner{mine, Sought{a}}}, Locate{Job: other, Actor: a})
	up := alive(a, "hits")
	up.Worker = ids.ClientID(ids.Home(2).ID(7))
	for _, ev := range []Event{up, Locate{Job: other, Actor: a}} {
		said, ok := c.Step(0, ev)[0].(ToOwner)
		if at, is := said.Msg.(Place); !ok || !is || said.Job != other || at.State != actor.Locating || !errors.Is(at.Err, errs.ErrActorUnavailable) || at.Worker != 0 ||
			!strings.Contains(at.Err.Error(), "does not run on node n1") {
			t.Errorf("told is %+v", said)
		}
	}
}

// A job that looks for an actor is told where it is, at once and whenever it moves, until it withdraws.
func TestLocate(t *testing.T) {
	c, a := newCore(), actorOf(mine, 1)
	steps(t, c, []Effect{ToOwner{mine, Sought{a}}}, Locate{Job: other, Actor: a})
	up := alive(a, "hits")
	steps(t, c, []Effect{ToOwner{other, up.Place}, UpdateRow{Row{a, up.Opts}}}, up)
	steps(t, c, []Effect{ToOwner{other, up.Place}}, Locate{Job: other, Actor: a})
	moved := Publish{Place{Actor: a, State: actor.Restarting, Opts: named("hits"), Restarts: 1}}
	steps(t, c, []Effect{ToOwner{other, moved.Place}}, moved)
	steps(t, c, nil, Locate{Job: other, Actor: a, Done: true})
	steps(t, c, nil, moved)
}

// A Publish that comes twice is told twice, and changes nothing.
func TestStatementsMayComeTwice(t *testing.T) {
	c, a := newCore(), actorOf(mine, 1)
	up := alive(a, "hits")
	c.Step(0, Locate{Job: other, Actor: a})
	c.Step(0, up)
	steps(t, c, []Effect{ToOwner{other, up.Place}, UpdateRow{Row{a, up.Opts}}}, up)
	dead := Place{Actor: a, State: actor.Dead}
	free := FreeRow{Name{"prod", "hits"}, a}
	steps(t, c, []Effect{ToOwner{other, dead}, free}, Release{Actor: a})
	steps(t, c, nil, Release{Actor: a}) // whoever repeats it without the name has nothing to add
	steps(t, c, []Effect{free}, Release{Actor: a, Opts: named("hits")})
}

// A name that is being given up is claimed after that, even if giving it up fails first.
func TestAClaimWaitsForTheRelease(t *testing.T) {
	for _, err := range []*errs.Error{nil, errs.New(errs.CodeDeadline, "slow")} {
		c, a := newCore(), actorOf(mine, 1)
		c.Step(0, alive(a, "hits"))
		free := FreeRow{Name{"prod", "hits"}, a}
		steps(t, c, []Effect{free}, Release{Actor: a, Opts: named("hits")})
		next := Claim{Job: other, Actor: actorOf(other, 1), Opts: named("hits")}
		steps(t, c, nil, next)
		want := []Effect{ClaimRow{next}}
		if err != nil {
			want = append(want, Warn{What: "an actor's name could not be given up yet", Row: free, Err: err}, After{D: freeAgain, Ev: FreeAgain{free}})
		}
		steps(t, c, want, Freed{FreeRow: free, Err: err})
		steps(t, c, []Effect{free}, FreeAgain{free})
	}
}

// A name whose actor is ending is claimed after its end, by who takes what there is too. So it is for a core that follows, and where the job ends instead.
func TestAClaimWaitsForAnActorThatIsEnding(t *testing.T) {
	a := actorOf(mine, 1)
	ending := alive(a, "hits")
	ending.Ending = true
	opts := named("hits")
	opts.GetIfExists = true
	next, free := Claim{Job: other, Actor: actorOf(other, 1), Opts: opts}, FreeRow{Name{"prod", "hits"}, a}
	for name, how := range map[string]struct {
		before []Event
		last   Event
	}{
		"its end":         {[]Event{alive(a, "hits"), ending, ending}, Release{Actor: a}},
		"a core follows":  {[]Event{Rebuild{[]ids.JobID{mine, other}}, ending}, Release{Actor: a, Opts: named("hits")}},
		"its job's end":   {[]Event{alive(a, "hits"), ending}, JobEnded{mine}},
		"a dead claimant": {[]Event{alive(a, "hits"), ending, Claim{Job: mine, Actor: actorOf(mine, 2), Opts: opts}}, JobEnded{mine}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore()
			for _, ev := range how.before {
				c.Step(0, ev)
			}
			steps(t, c, nil, next)
			steps(t, c, []Effect{free}, how.last)
			steps(t, c, []Effect{ClaimRow{next}}, Freed{FreeRow: free})
			if len(c.freeing) > 0 {
				t.Errorf("there is left %v", c.freeing)
			}
		})
	}
}

// When a job ends, nobody is left waiting for its actors, and its names are free.
func TestAJobEnds(t *testing.T) {
	c, a, late := newCore(), actorOf(mine, 1), Claim{Job: mine, Actor: actorOf(mine, 2), Opts: named("late")}
	c.Step(0, Locate{Job: other, Actor: a})
	c.Step(0, alive(a, "hits"))
	c.Step(0, Locate{Job: mine, Actor: actorOf(other, 1)})
	c.Step(0, late)
	gone := ended(a)
	steps(t, c, []Effect{ToOwner{other, gone}, FreeRow{Name{"prod", "hits"}, a}}, JobEnded{mine})
	steps(t, c, []Effect{FreeRow{Name{"prod", "late"}, late.Actor}}, Claimed{Claim: late})
	steps(t, c, []Effect{ToOwner{other, gone}}, Locate{Job: other, Actor: a})
	steps(t, c, nil, Publish{Place{Actor: actorOf(other, 1), State: actor.Alive}}) // whom the job looked for
}

// An actor of another home cannot be found here, but is not reported as dead.
func TestAnActorOfAnotherHomeIsRefused(t *testing.T) {
	c := newCore()
	far := actorOf(ids.JobID(ids.Home(3).ID(1)), 1)
	out := c.Step(0, Locate{Job: mine, Actor: far})
	if len(out) != 1 {
		t.Fatalf("%+v", out)
	}
	at := out[0].(ToOwner).Msg.(Place)
	if at.State != actor.Locating || !errors.Is(at.Err, errs.ErrActorUnavailable) {
		t.Errorf("it is told %+v", at)
	}
	row := Row{far, named("theirs")}
	steps(t, c, nil, Listed{Rows: []Row{row}})
}

// A new core asks for everything that the one before knew, and ends in the same state.
func TestRebuild(t *testing.T) {
	c, a := New(0, "n1"), actorOf(mine, 1)
	steps(t, c, []Effect{ToOwner{mine, Restate{}}, ToOwner{other, Restate{}}, ListRows{}}, Rebuild{Jobs: []ids.JobID{other, mine}})
	c.Step(0, alive(a, "hits"))
	c.Step(0, Locate{Job: other, Actor: a})
	row := Row{a, named("hits")}
	steps(t, c, []Effect{ToOwner{mine, NameHeld(row)}}, Listed{Rows: []Row{row}})
	steps(t, c, []Effect{ToOwner{mine, NameHeld(row)}}, OwnerRestarted{mine})
	steps(t, c, []Effect{ToOwner{other, Place{Actor: a, State: actor.Dead}}, FreeRow{Name{"prod", "hits"}, a}}, Release{Actor: a})
}

// An actor that died just before its node was killed has its name in the table still: its owner, or the end of its job, says that it is free.
func TestANameWhoseActorDiedJustBeforeAKill(t *testing.T) {
	c, a, orphan := New(0, "n1"), actorOf(mine, 1), actorOf(77, 1)
	c.Step(0, JobBegan{mine})
	steps(t, c, []Effect{ListRows{}}, Reconcile{})
	rows := []Row{{a, named("hits")}, {orphan, named("left")}}
	steps(t, c, []Effect{ToOwner{mine, NameHeld(rows[0])}, FreeRow{Name{"prod", "left"}, orphan}}, Listed{Rows: rows})
	steps(t, c, []Effect{FreeRow{Name{"prod", "hits"}, a}}, Release{Actor: a, Opts: named("hits")})
	failed := errs.New(errs.CodeDeadline, "slow")
	steps(t, c, []Effect{Warn{What: "the names of actors could not be read; those of dead ones stay taken", Err: failed}}, Listed{Err: failed})
}

// Whoever has another job's actor killed may take its name at once: its claim waits until the actor's owner has given the name up. It does not wait for an actor
// that restarts, or for an owner that was rebuilt and may have lost the word.
func TestTheNameOfAnActorThatIsKilled(t *testing.T) {
	for _, lost := range []bool{false, true} {
		c, a := newCore(), actorOf(mine, 1)
		m := Claim{Job: mine, Actor: a, Opts: named("hits")}
		steps(t, c, []Effect{ToOwner{mine, NameClaimed{Actor: a}}}, m, Claimed{Claim: m})
		again, kill := Claim{Job: other, Actor: actorOf(other, 1), Opts: named("hits")}, Kill{Actor: a, Restart: true}
		steps(t, c, []Effect{ToOwner{mine, kill}}, kill)
		steps(t, c, []Effect{ClaimRow{again}}, again)
		kill.Restart = false
		steps(t, c, []Effect{ToOwner{mine, kill}}, kill)
		steps(t, c, nil, again)
		if lost {
			steps(t, c, []Effect{ToOwner{mine, NameHeld{Actor: a, Opts: m.Opts}}, ClaimRow{again}}, OwnerRestarted{mine})
			continue
		}
		free := FreeRow{Name: Name{"prod", "hits"}, Actor: a}
		steps(t, c, []Effect{free}, Release{Actor: a, Opts: m.Opts})
		steps(t, c, []Effect{ClaimRow{again}}, Freed{FreeRow: free})
	}
	c := newCore()
	steps(t, c, []Effect{ToOwner{mine, Kill{Actor: actorOf(mine, 3)}}}, Kill{Actor: actorOf(mine, 3)}) // one without a name
}
