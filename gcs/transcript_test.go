package gcs_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula/gcs"
	"mobula/gcs/directory"
	"mobula/gcs/shell"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/transcript"
	actorstate "mobula/raylet/owner/actor"
	"mobula/wire"
)

// TestTranscripts tells the stories of testdata/transcripts (package transcript): what owners say of named actors, what the directory and the control
// plane make of it, and what stands in the table.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(*testing.T) func(transcript.Block) []string {
		s := &story{directory: directory.New(0, "n"), core: gcs.NewCore(), tables: shell.NewMemory(), asked: make(map[uint64]asked)}
		return func(b transcript.Block) []string {
			s.Block, s.said = b, nil
			s.run()
			return s.said
		}
	})
}

// story is a node's directory and its control plane. The owners are who tells the story.
type story struct {
	transcript.Block
	directory *directory.Core
	core      *gcs.Core
	tables    *shell.Memory
	away      bool // the table's server does not answer
	slow      bool // nor does it yet
	calls     []gcs.Effect
	asked     map[uint64]asked // without an answer, by number
	last      uint64
	timers    []directory.Event
	actors    []namedActor
	said      []string
}

type asked struct {
	op   gcs.Op
	done func(gcs.Reply)
}

type namedActor struct {
	word string
	id   ids.ActorID
}

func (s *story) run() {
	switch s.Cmd {
	case "jobs": // jobs N...: they have owners
		for i := range s.Words() {
			s.tell(directory.JobBegan{Job: s.job(i)})
		}
	case "job-ends":
		s.tell(directory.JobEnded{Job: s.job(0)})
	case "claim": // claim NAME ACTOR job=N [get-if-exists]
		opts := options(s.Word(0))
		opts.GetIfExists = s.Has("get-if-exists")
		job := ids.JobID(s.Int("job", 1))
		s.tell(directory.Claim{Job: job, Actor: s.newActor(s.Word(1), job), Opts: opts})
	case "alive": // alive ACTOR [name=NAME]: its owner says so
		s.tell(directory.Publish{Place: directory.Place{Actor: s.actor(0), State: actorstate.Alive, Worker: 7, Opts: s.options()}})
	case "restarting":
		s.tell(directory.Publish{Place: directory.Place{Actor: s.actor(0), State: actorstate.Restarting, Opts: s.options()}})
	case "dies": // dies ACTOR name=NAME
		s.tell(directory.Release{Actor: s.actor(0), Opts: s.options(), Err: errs.New(errs.CodeActorDied, "its process was killed")})
	case "locate": // locate ACTOR job=N: that job looks for it
		s.tell(directory.Locate{Job: ids.JobID(s.Int("job", 1)), Actor: s.actor(0)})
	case "owner-restarts":
		s.tell(directory.OwnerRestarted{Job: s.job(0)})
	case "directory-restarts": // directory-restarts jobs=(N, N)
		s.directory, s.timers = directory.New(0, "n"), nil
		s.tell(directory.Rebuild{Jobs: s.jobs()})
	case "node-restarts": // node-restarts jobs=(N, N): those came back
		s.directory, s.timers, s.calls = directory.New(0, "n"), nil, nil
		for _, job := range s.jobs() {
			s.tell(directory.JobBegan{Job: job})
		}
		s.tell(directory.Reconcile{})
	case "gcs-restarts": // what has no answer is asked again
		s.core = gcs.NewCore()
		for _, r := range s.rows() {
			s.core.Step(0, gcs.Changed{Bucket: gcs.Actors, Key: r.Key(), Record: r})
		}
		var again []uint64
		for id := range s.asked {
			again = append(again, id)
		}
		slices.Sort(again)
		for _, id := range again {
			s.step(gcs.Request{id, s.asked[id].op})
		}
	case "server-away": // every call fails
		s.away = true
	case "server-slow": // no call is answered yet
		s.slow = true
	case "server-back":
		s.away, s.slow = false, false
		calls := s.calls
		s.calls = nil
		for _, e := range calls {
			s.call(e)
		}
	case "pass": // pass DURATION
		if s.Duration(0) >= time.Second {
			due := s.timers
			s.timers = nil
			for _, ev := range due {
				s.tell(ev)
			}
		}
	case "table":
		for _, r := range s.rows() {
			s.say("%s is %s's, %s", r.Name, r.Actor, r.State)
		}
	default:
		s.Unknown()
	}
}

func (s *story) job(i int) ids.JobID { return ids.JobID(s.Number(i)) }

func (s *story) jobs() []ids.JobID {
	var out []ids.JobID
	for _, text := range s.List("jobs") {
		job, err := ids.ParseNumber[ids.JobID](text)
		if err != nil {
			s.Fatalf("%v", err)
		}
		out = append(out, job)
	}
	return out
}

func (s *story) newActor(word string, job ids.JobID) ids.ActorID {
	id := ids.ActorID(ids.Derive(ids.RootTask(job, 1), uint64(len(s.actors))))
	s.actors = append(s.actors, namedActor{word, id})
	return id
}

func (s *story) actor(i int) ids.ActorID {
	at := slices.IndexFunc(s.actors, func(a namedActor) bool { return a.word == s.Word(i) })
	if at < 0 {
		s.Fatalf("no actor is called %q", s.Word(i))
	}
	return s.actors[at].id
}

func options(name string) *wire.TaskOptions {
	return &wire.TaskOptions{Namespace: "prod", ActorName: name, Func: "app/counter"}
}

// options are those of an actor whose owner says its name.
func (s *story) options() *wire.TaskOptions {
	if !s.Has("name") {
		return nil
	}
	return options(s.Text("name", ""))
}

// rows is the table of names, in order.
func (s *story) rows() []gcs.ActorRecord {
	life, end := context.WithCancel(context.Background())
	defer end()
	var out []gcs.ActorRecord
	_ = s.tables.Watch(life, life, func(c gcs.Changed) { // a table in memory always tells all rows
		if r, ok := c.Record.(gcs.ActorRecord); ok {
			out = append(out, r)
		}
	})
	slices.SortFunc(out, func(a, b gcs.ActorRecord) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// say writes a line, with words in the place of ids.
func (s *story) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	for _, a := range s.actors {
		line = strings.ReplaceAll(line, a.id.String(), a.word)
	}
	s.said = append(s.said, line)
}

// tell gives the directory an event, and carries out what it asks for.
func (s *story) tell(ev directory.Event) {
	for _, e := range slices.Clone(s.directory.Step(0, ev)) {
		switch e := e.(type) {
		case directory.ToOwner:
			s.say("owner of job %v <- %s", e.Job, message(e.Msg))
		case directory.ClaimRow:
			s.say("gcs <- claim %s for %v", e.Opts.ActorName, e.Actor)
			s.ask(gcs.Claim{record(e.Actor, e.Opts, gcs.ActorPending)}, func(r gcs.Reply) {
				c := directory.Claimed{Claim: e.Claim, Err: errs.From(r.Err)}
				if len(r.Records) > 0 {
					holder, _ := ids.ParseTask(r.Records[0].(gcs.ActorRecord).Actor)
					c.Holder = ids.ActorID(holder)
				}
				s.tell(c)
			})
		case directory.FreeRow:
			s.say("gcs <- free %s, if it is %v's", e.Name.Name, e.Actor)
			s.ask(gcs.Free{Namespace: e.Namespace, Name: e.Name.Name, Actor: e.Actor.String()}, func(r gcs.Reply) {
				s.tell(directory.Freed{FreeRow: e, Err: errs.From(r.Err)})
			})
		case directory.UpdateRow:
			s.say("gcs <- %v, who has %s, is alive", e.Actor, e.Opts.ActorName)
			s.ask(gcs.Update{record(e.Actor, e.Opts, gcs.ActorAlive)}, func(gcs.Reply) {})
		case directory.ListRows:
			s.say("gcs <- list the names")
			s.ask(gcs.List{gcs.Actors}, func(r gcs.Reply) {
				out := directory.Listed{Err: errs.From(r.Err)}
				for _, r := range r.Records {
					id, _ := ids.ParseTask(r.(gcs.ActorRecord).Actor)
					out.Rows = append(out.Rows, directory.Row{Actor: ids.ActorID(id), Opts: options(r.(gcs.ActorRecord).Name)})
				}
				s.tell(out)
			})
		case directory.After:
			s.say("timer in %v", e.D)
			s.timers = append(s.timers, e.Ev)
		case directory.Warn:
			s.say("log <- %s: %v", e.What, e.Err)
		}
	}
}

func record(id ids.ActorID, o *wire.TaskOptions, st gcs.ActorState) gcs.ActorRecord {
	return gcs.ActorRecord{Namespace: o.Namespace, Name: o.ActorName, Actor: id.String(), Type: o.Func, Job: id.Job(), State: st}
}

func message(m directory.Msg) string {
	switch m := m.(type) {
	case directory.NameClaimed:
		switch {
		case m.Err != nil:
			return fmt.Sprintf("%v has not the name: %v", m.Actor, m.Err)
		case !m.Existing.IsZero():
			return fmt.Sprintf("%v has not the name, use %v", m.Actor, m.Existing)
		}
		return fmt.Sprintf("%v has the name", m.Actor)
	case directory.NameHeld:
		return fmt.Sprintf("the table has %s for %v", m.Opts.ActorName, m.Actor)
	case directory.Place:
		line := fmt.Sprintf("%v is %v", m.Actor, m.State)
		if m.Err != nil {
			line += ": " + m.Err.Error()
		}
		return line
	case directory.Sought:
		return fmt.Sprintf("where is %v?", m.Actor)
	case directory.Restate:
		return "say again what you claim, have and look for"
	}
	return fmt.Sprintf("%T", m)
}

// ask makes a request of the control plane.
func (s *story) ask(op gcs.Op, done func(gcs.Reply)) {
	s.last++
	s.asked[s.last] = asked{op, done}
	s.step(gcs.Request{s.last, op})
}

// step gives the control plane's core an event, and carries out what it asks for.
func (s *story) step(ev gcs.Event) {
	for _, e := range slices.Clone(s.core.Step(0, ev)) {
		if r, ok := e.(gcs.Reply); ok {
			if a, waits := s.asked[r.ID]; waits {
				delete(s.asked, r.ID)
				a.done(r)
			}
			continue
		}
		s.call(e)
	}
}

// call has the server make a call to the table. One that is slow makes it later.
func (s *story) call(e gcs.Effect) {
	what, id, wrote := call(e)
	switch {
	case s.slow:
		s.say("server <- %s", what)
		s.calls = append(s.calls, e)
	case s.away:
		s.say("server <- %s: no answer", what)
		s.step(gcs.Answered{ID: id, Wrote: wrote, Err: errors.New("the server does not answer")})
	default:
		a := s.tables.Do(s.T.Context(), e)
		s.say("server <- %s: %s", what, outcome(a))
		if wrote && !a.Conflict {
			s.changed(e, a.Revision)
		}
		s.step(a)
	}
}

// changed is the watch on the table.
func (s *story) changed(e gcs.Effect, revision uint64) {
	switch e := e.(type) {
	case gcs.Write:
		s.core.Step(0, gcs.Changed{Bucket: gcs.Actors, Key: e.Record.Key(), Record: e.Record, Revision: revision})
	case gcs.Delete:
		s.core.Step(0, gcs.Changed{Bucket: gcs.Actors, Key: e.Key, Revision: revision})
	}
}

// call says what a call is, its number and whether it writes.
func call(e gcs.Effect) (what string, id uint64, wrote bool) {
	unless := func(revision int64) string {
		switch revision {
		case -1:
			return ""
		case 0:
			return ", if there is none"
		}
		return ", if nobody has changed it"
	}
	name := func(key string) string { return strings.TrimPrefix(key, "prod.") }
	switch e := e.(type) {
	case gcs.Write:
		r := e.Record.(gcs.ActorRecord)
		return fmt.Sprintf("write %s: %s, %s%s", r.Name, r.Actor, r.State, unless(e.Revision)), e.ID, true
	case gcs.Delete:
		return "delete " + name(e.Key) + unless(e.Revision), e.ID, true
	case gcs.Read:
		return "read " + name(e.Key), e.ID, false
	}
	return fmt.Sprintf("%T", e), 0, false
}

func outcome(a gcs.Answered) string {
	switch {
	case a.Conflict:
		return "refused"
	case a.Wrote:
		return "done"
	case a.Record == nil:
		return "none"
	}
	r := a.Record.(gcs.ActorRecord)
	return fmt.Sprintf("%s, %s", r.Actor, r.State)
}
