package direct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/transcript"
)

// TestTranscripts tells the stories of testdata/transcripts (package transcript): what a process that calls one actor is told, and what the actor's process is, and what
// each asks for.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(*testing.T) func(transcript.Block) []string {
		s := &story{caller: NewCaller(NewMemory(), nil), calls: make(map[string]*Call), names: make(map[ids.TaskID]string), incoming: make(map[string]*Incoming)}
		return func(b transcript.Block) []string {
			s.Block, s.said = b, nil
			s.run()
			return s.said
		}
	})
}

// story is one process that calls, and one instance of an actor.
type story struct {
	transcript.Block
	caller   *Caller
	host     *Host
	calls    map[string]*Call
	names    map[ids.TaskID]string
	incoming map[string]*Incoming
	said     []string
}

var says = map[string]Said{"": SaidNothing, "waits": SaidWaits, "begun": SaidBegun, "culprit": SaidCulprit}

func (s *story) run() {
	switch s.Cmd {
	case "call": // call NAME [by=TASK] [retries=N] [bytes=N] [missing=N] [owner] [shared]
		k := s.call(s.Word(0))
		k.Retries, k.Bytes, k.Missing, k.ByOwner = int32(s.Int("retries", 0)), int64(s.Int("bytes", 1)), s.Int("missing", 0), s.Has("owner")
		k.Shared = s.Has("shared")
		s.step(Begin{k})
	case "argument": // argument NAME [failed]
		var err *errs.Error
		if s.Has("failed") {
			err = errs.New(errs.CodeTaskFailed, "no such file")
		}
		s.step(Argument{Call: s.call(s.Word(0)), Err: err})
	case "cancel": // cancel NAME [force] [recursive] [insist] [unbegun]
		e := Cancel{Call: s.call(s.Word(0)), Wish: s.wish()}
		if s.Has("unbegun") {
			e.Why = deadlock
		}
		s.step(e)
	case "expires":
		s.step(Expired{s.call(s.Word(0))})
	case "opened": // opened CHANNEL [credit=N]
		s.step(Opened{Instance(s.Number(0)), Channel(s.Number(0)), int64(s.Int("credit", 100))})
	case "by-owner":
		s.step(GoesByOwner{})
	case "no-way": // no-way dead or restarting
		dead := s.Word(0) == "dead"
		s.step(NoWay{dead, ending(dead)})
	case "answer": // answer CHANNEL NO ACK [VALUE] [bytes=N] [said=HOW] [holds]
		a := &Answered{Channel: Channel(s.Number(0)), No: uint64(s.Number(1)), AckNo: uint64(s.Number(2)), Said: says[s.Text("said", "")], Holds: s.Has("holds")}
		if words := s.Words(); len(words) > 3 && words[3] != "holds" {
			a.Outcome = &Outcome{Value: words[3], Bytes: int64(s.Int("bytes", 1))}
		} else if a.Said == SaidCulprit {
			a.Outcome = &Outcome{Err: errs.New(errs.CodePanic, "a panic")}
		}
		s.step(a)
	case "held": // held CHANNEL ACK
		s.step(Held{Channel(s.Number(0)), uint64(s.Number(1))})
	case "broke": // broke CHANNEL [last]
		s.step(Broke{Channel(s.Number(0)), s.Has("last")})
	case "over": // over CHANNEL restarts|dead|same [keeps] [begun=N]
		e := Over{Channel: Channel(s.Number(0)), Keeps: s.Has("keeps"), Begun: []uint64{uint64(s.Int("begun", 0))}, Err: ending(s.Word(1) == "dead")}
		e.Next = map[string]Next{"restarts": NextInstance, "dead": NextNone, "same": NextSame}[s.Word(1)]
		s.step(e)
	case "idle":
		s.step(Idle{Channel(s.Number(0))})
	case "owner-answers": // owner-answers NAME VALUE
		s.step(OwnerAnswered{s.call(s.Word(0)), &Outcome{Value: s.Word(1)}})
	case "leaves":
		s.step(Leaves{s.call(s.Word(0))})
	case "released":
		s.step(Released{s.call(s.Word(0))})
	case "adopted":
		s.step(Adopted{s.call(s.Word(0))})
	case "relieve": // relieve BYTES
		s.step(Relieve{int64(s.Number(0))})

	case "look":
		s.caller.Look(func(k *Call, at Place, ahead int) { s.say("%s: %s%s", s.names[k.ID], places[at], behind(ahead)) })
	case "host-look":
		s.host.Look(func(in *Incoming, runs, aside bool, ahead int) {
			how := map[[2]bool]string{{true, false}: "runs", {false, false}: "waits", {false, true}: "stands aside"}[[2]bool{runs, aside}]
			s.say("%s: %s%s", s.names[in.ID], how, behind(ahead))
		})

	case "host": // host [at-once=N] [pending=N] [unread=N]
		s.host = NewHost(HostConfig{Groups: []int{s.Int("at-once", 1)}, Pending: s.Int("pending", 0), Unread: int64(s.Int("unread", 1000))}, NewHostMemory())
	case "linked":
		s.hostStep(Linked{Channel(s.Number(0))})
	case "arrives": // arrives CHANNEL NAME
		in := &Incoming{ID: s.call(s.Word(1)).ID}
		s.incoming[s.Word(1)] = in
		s.hostStep(&Arrived{Channel(s.Number(0)), in})
	case "unwanted": // unwanted CHANNEL NO [force] [recursive] [insist] [unbegun]
		e := Unwanted{Channel: Channel(s.Number(0)), No: uint64(s.Number(1)), Wish: s.wish()}
		if s.Has("unbegun") {
			e.Unbegun = &Outcome{Err: deadlock}
		}
		s.hostStep(e)
	case "overdue":
		s.hostStep(Overdue{s.incoming[s.Word(0)]})
	case "finished": // finished NAME [bytes=N]
		s.hostStep(&Finished{Call: s.incoming[s.Word(0)], Outcome: &Outcome{Value: "result-of-" + s.Word(0)}, Bytes: int64(s.Int("bytes", 1))})
	case "panics":
		s.hostStep(&Finished{Call: s.incoming[s.Word(0)], Outcome: &Outcome{Err: errs.New(errs.CodePanic, "a panic")}, Panicked: true})
	case "acked": // acked CHANNEL ACK
		s.hostStep(Acked{Channel(s.Number(0)), uint64(s.Number(1))})
	case "unlinked":
		s.hostStep(Unlinked{Channel(s.Number(0))})
	case "stop": // stop [drain]
		s.hostStep(Stopping{s.Has("drain")})
	case "where": // where CHANNEL NO...
		var nos []uint64
		for i := 1; i < len(s.Words()); i++ {
			nos = append(nos, uint64(s.Number(i)))
		}
		s.hostStep(Where{Channel(s.Number(0)), nos})
	case "dropped":
		s.hostStep(Dropped{Channel(s.Number(0))})
	default:
		s.Unknown()
	}
}

var places = []string{OnItsWay: "on its way", NeedsArg: "needs an argument", BehindOthers: "has its turn later", BehindWay: "waits for calls that went another way",
	NeedsWay: "needs a way", NeedsWord: "needs a word", NeedsCredit: "needs credit"}

func behind(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", behind %d", n)
}

var deadlock = errs.New(errs.CodeDeadlock, "it waits for itself")

func unlessBegun(o *Outcome) string {
	if o != nil {
		return " unless it has begun"
	}
	return ""
}

func (s *story) wish() Wish {
	return Wish{Force: s.Has("force"), Recursive: s.Has("recursive"), Insist: s.Has("insist")}
}

func wished(w Wish) (s string) {
	if w.Recursive {
		s += " and what it has made"
	}
	if w.Force {
		s += " with force"
	}
	if w.Insist {
		s += ", soon by force"
	}
	return s
}

func ending(dead bool) *errs.Error {
	if dead {
		return errs.New(errs.CodeActorDied, "the actor is dead")
	}
	return errs.New(errs.CodeActorUnavailable, "the actor is restarting")
}

// call is the call of a name, made by the task that the option names.
func (s *story) call(name string) *Call {
	k := s.calls[name]
	if k == nil {
		by := ids.Derive(ids.RootTask(1, 1), 50+uint64(slices.Index([]string{"main", "other"}, s.Text("by", "main"))))
		k = &Call{ID: ids.Derive(by, uint64(len(s.calls))), Caller: by}
		s.calls[name], s.names[k.ID] = k, name
	}
	return k
}

func (s *story) say(format string, args ...any) {
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *story) step(e Event) {
	for _, f := range s.caller.Step(0, e) {
		name := ""
		if f.Call != nil {
			name = s.names[f.Call.ID]
		}
		switch f.Do {
		case AskWay:
			s.say("node <- which way to the actor?")
		case AskWord:
			s.say("node <- what has become of channel %d?", f.Channel)
		case Send:
			s.say("channel %d <- %d: %s", f.Channel, f.No, name)
		case Withdraw:
			s.say("channel %d <- cancel %d%s%s", f.Channel, f.No, wished(f.Wish), unlessBegun(f.Outcome))
		case Submit:
			s.say("owner <- submit %s", name)
		case Revoke:
			s.say("owner <- cancel %s%s", name, wished(f.Wish))
		case Settle:
			s.say("%s = %s", name, s.outcome(f.Outcome))
		case Adopt:
			s.say("owner <- adopt %s%s", name, s.place(f))
		case Report:
			s.say("owner <- %s = %s", name, s.outcome(f.Outcome))
		case Depart:
			s.say("a reference to %s may leave", name)
		case AckUpTo:
			s.say("channel %d <- answers taken up to %d", f.Channel, f.No)
		case HangUp:
			s.say("channel %d is closed", f.Channel)
		}
	}
}

func (s *story) place(f Effect) string {
	switch {
	case f.Outcome != nil:
		return " = " + s.outcome(f.Outcome)
	case f.No > 0:
		return " on channel " + strconv.Itoa(int(f.Channel)) + " as " + strconv.Itoa(int(f.No))
	}
	return ", not sent"
}

func (s *story) outcome(o *Outcome) string {
	switch {
	case o == nil:
		return "nothing"
	case o.Err != nil:
		return "error: " + strings.TrimSuffix(o.Err.Error(), ": "+o.Err.Task)
	}
	return fmt.Sprint(o.Value)
}

func (s *story) hostStep(e HostEvent) {
	for _, f := range s.host.Step(0, e) {
		name := ""
		if f.Call != nil {
			name = s.names[f.Call.ID]
		}
		switch f.Do {
		case Run:
			s.say("page of channel %d <- begun up to %d", f.Channel, f.No)
			s.say("runs %s", name)
		case Interrupt:
			s.say("interrupts %s%s", name, wished(f.Wish))
		case Answer:
			s.say("channel %d <- answer %d: call %d = %s", f.Channel, f.AckNo, f.No, s.answer(f))
		case SayLast:
			s.say("channel %d <- nothing follows", f.Channel)
		case TellOwner:
			s.say("owner <- call %d of channel %d = %s", f.No, f.Channel, s.answer(f))
		case NotHere:
			s.say("owner <- call %d of channel %d never came", f.No, f.Channel)
		case Fallen:
			s.say("owner <- %s has brought the instance down: %s", name, s.outcome(f.Outcome))
		}
	}
}

func (s *story) answer(f HostEffect) string {
	switch f.Said {
	case SaidWaits:
		return "it has not begun"
	case SaidBegun:
		return "it had begun"
	case SaidCulprit:
		return "it panicked"
	case SaidNothing:
	}
	return s.outcome(f.Outcome)
}
