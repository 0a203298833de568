package owner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/transcript"
	"mobula/objectstore"
	"mobula/raylet/owner/record"
	"mobula/raylet/sched"
	"mobula/wire"
)

// TestTranscripts tells the stories of testdata/transcripts (package transcript): events for an owner, and what it then asks for.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(t *testing.T) func(transcript.Block) []string {
		s := &story{script: newScript(t, Config{Transitions: true}), specs: make(map[string]*wire.TaskSpec), names: make(map[ids.TaskID]string),
			seqs: make(map[string]uint64)}
		return func(b transcript.Block) []string {
			s.Block, s.shown = b, nil
			s.run()
			return strings.Split(s.withNames(strings.Join(s.shown, "\n")), "\n")
		}
	})
}

// story is a script whose tasks, actors and objects have names.
type story struct {
	*script
	transcript.Block
	specs map[string]*wire.TaskSpec
	names map[ids.TaskID]string
	seqs  map[string]uint64 // of calls, by actor
	shown []string
}

func (r *story) run() {
	switch r.Cmd {
	case "submit", "actor", "call":
		r.submitOne()
	case "get":
		r.fromDriver(&wire.Get{ID: r.object(0)})
	case "release":
		r.fromDriver(&wire.Release{IDs: []ids.ObjectID{r.object(0)}})
	case "cancel":
		r.fromDriver(&wire.Cancel{Task: r.spec(0).ID, Force: r.Has("force"), Recursive: r.Has("recursive")})
	case "kill-actor":
		r.fromDriver(&wire.KillActor{Actor: ids.ActorID(r.spec(0).ID), Restart: r.Has("restart")})
	case "grant":
		r.grant(r.client(r.Word(0)))
		r.show()
	case "done":
		r.doneOne()
	case "sealed":
		t := r.c.tasks.task(r.spec(0).ID)
		r.give(FromClient{t.lease.worker.id, []wire.Msg{&wire.Seal{ID: t.id().Return(0), Attempt: t.start, Size: 1 << 20}}})
	case "pinned":
		t := r.c.tasks.task(r.spec(0).ID)
		var vs []objectstore.PinnedValue
		for _, a := range t.spec.Args {
			vs = append(vs, objectstore.PinnedValue{ID: a.Ref})
		}
		r.give(FromStore{Msg: objectstore.ArgsPinned{Task: t.id(), Attempt: t.start, Ask: r.c.ask(t), Values: vs}})
	case "lost":
		r.give(FromStore{Msg: objectstore.Lost{ID: r.object(0)}})
	case "worker-dies":
		cl := r.client(r.Word(0))
		held := slices.Clone(r.c.client(cl).leases)
		r.give(ClientGone{Client: cl})
		for _, l := range held {
			r.give(FromSched{sched.Revoked{Lease: l.id, Worker: cl, Err: errs.New(errs.CodeWorkerCrashed, "its process was killed")}})
		}
	case "worker-joins":
		r.give(ClientJoined{Client: r.client(r.Word(0)), Role: wire.RoleWorker})
	case "driver-exits":
		r.give(ClientGone{Client: driver})
	case "pass":
		r.now += int64(r.Duration(0))
		r.give(Timer{})
	default:
		r.Unknown()
	}
}

// submitOne is submit NAME, actor NAME or call NAME actor=A, with args=(NAME,...) retries=N restarts=N returns=N retry-exceptions.
func (r *story) submitOne() {
	name := r.Word(0)
	opts := &wire.TaskOptions{Func: name, NumReturns: 1}
	spec := r.script.spec(opts)
	switch r.Cmd {
	case "actor":
		spec.Kind, spec.Actor = wire.TaskActorCreate, ids.ActorID(spec.ID)
	case "call":
		spec.Kind, spec.Actor = wire.TaskActorCall, ids.ActorID(r.named(r.Text("actor", "")).ID)
		r.seqs[r.Text("actor", "")]++
		spec.Seq = r.seqs[r.Text("actor", "")]
	}
	opts.MaxRetries, opts.MaxRestarts, opts.MaxTaskRetries = int32(r.Int("retries", 0)), int32(r.Int("restarts", 0)), int32(r.Int("task-retries", 0))
	opts.RetryExceptions = r.Has("retry-exceptions")
	for _, arg := range r.List("args") {
		spec.Args = append(spec.Args, wire.Arg{Ref: r.named(arg).ID.Return(0)})
	}
	r.specs[name], r.names[spec.ID] = spec, name
	r.fromDriver(&wire.Submit{Spec: spec})
}

// doneOne is done NAME value=V, done NAME stored, or done NAME error=MESSAGE.
func (r *story) doneOne() {
	t := r.c.tasks.task(r.spec(0).ID)
	m := &wire.Done{Task: t.id(), Attempt: t.start, Lease: t.lease.id, Times: wire.Times{Started: r.now, Ended: r.now + int64(5*time.Millisecond)}}
	switch {
	case r.Has("error"):
		m.Err = errs.New(errs.CodeTaskFailed, "%s", r.Text("error", ""))
	case r.Has("stored"):
		m.Results = []wire.Result{{Kind: wire.ResultStored, Size: 1 << 20}}
	case t.isCreation():
	default:
		m.Results = []wire.Result{inline(r.Text("value", "none"))}
	}
	r.give(FromClient{t.lease.worker.id, []wire.Msg{m}})
}

func (r *story) fromDriver(m wire.Msg) { r.give(FromClient{driver, []wire.Msg{m}}) }

func (r *story) give(ev Event) {
	r.step(ev)
	r.show()
}

func (r *story) named(name string) *wire.TaskSpec {
	s := r.specs[name]
	if s == nil {
		r.Fatalf("nothing is called %q", name)
	}
	return s
}

func (r *story) spec(i int) *wire.TaskSpec { return r.named(r.Word(i)) }
func (r *story) object(i int) ids.ObjectID { return r.spec(i).ID.Return(0) }

var clientNames = map[string]ids.ClientID{"driver": driver, "worker1": worker, "worker2": worker2, "worker3": 4}

func (r *story) client(name string) ids.ClientID {
	id, ok := clientNames[name]
	if !ok {
		r.Fatalf("no client is called %q", name)
	}
	return id
}

func clientName(id ids.ClientID) string {
	for name, n := range clientNames {
		if n == id {
			return name
		}
	}
	return id.String()
}

// show writes down what the last step asked for.
func (r *story) show() {
	for i := range r.out {
		if line := r.line(&r.out[i]); line != "" {
			r.shown = append(r.shown, line)
		}
	}
}

func (r *story) line(e *Effect) string {
	switch e.Kind {
	case ToClient:
		return clientName(e.Client) + " <- " + r.message(e.Wire)
	case ToStore:
		return "store <- " + r.message(e.msg)
	case ToSched:
		return "scheduler <- " + r.message(e.msg)
	case ToDirectory:
		return "directory <- " + r.message(e.msg)
	case Log:
		var kinds []string
		for _, rec := range *e.Records {
			kinds = append(kinds, r.record(rec.Bytes))
		}
		return "log <- " + strings.Join(kinds, ", ")
	case After:
		return "timer in " + e.Delay().String()
	case Transitions:
		var lines []string
		for _, ch := range *e.Changes {
			if ch.Times != nil {
				continue // telemetry's copy of the worker's times
			}
			line := r.task(ch.Spec.ID) + " is " + ch.State.String()
			if ch.Reason != nil {
				line += ": " + ch.Reason.Error()
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	case JobEnded:
		return "the job has ended"
	}
	return "" // of the log's upkeep
}

func (r *story) record(b []byte) string {
	rec, _, err := record.Parse(b)
	if err != nil {
		r.t.Fatalf("the owner logs a record that cannot be read: %v", err)
	}
	switch rec := rec.(type) {
	case *record.Options:
		return "options of " + rec.Opts.Func
	case *record.Submit:
		return "submit " + r.task(rec.Spec.ID)
	case *record.Done:
		return fmt.Sprintf("%s %v", r.task(rec.Done.Task), rec.State)
	case *record.Retry:
		return fmt.Sprintf("attempt %d of %s is charged", rec.Attempt, r.task(rec.Task))
	case *record.Object:
		return "object " + r.of(rec.ID)
	case *record.Actor:
		return fmt.Sprintf("actor %s %v", r.task(ids.TaskID(rec.Actor)), rec.State)
	case *record.Forget:
		return fmt.Sprintf("forget %d", len(rec.IDs))
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", rec), "*record.")
}

func (r *story) message(m any) string {
	switch m := m.(type) {
	case *wire.Exec:
		var ts []string
		for _, x := range m.Tasks {
			ts = append(ts, fmt.Sprintf("attempt %d of %s", x.Attempt, r.task(x.Spec.ID)))
		}
		return "run " + strings.Join(ts, ", ")
	case *wire.Resolved:
		return r.of(m.ID) + " is " + r.result(m.Result)
	case *wire.CancelTask:
		return "cancel " + r.task(m.Task)
	case *wire.StopActor:
		return "stop actor " + r.task(ids.TaskID(m.Actor))
	case sched.Want:
		return fmt.Sprintf("want %d leases for %s", m.Backlog, m.Opts.Func)
	case sched.Return:
		return fmt.Sprintf("return lease %v", m.Lease)
	case sched.ActorUp:
		return fmt.Sprintf("lease %v is an actor's", m.Lease)
	case sched.DrainWorker:
		return "drain " + clientName(m.Worker)
	case objectstore.Free:
		var os []string
		for _, id := range m.IDs {
			os = append(os, r.of(id))
		}
		return "free " + strings.Join(os, ", ")
	case objectstore.PinArgs:
		return "pin the arguments of " + r.task(m.Task) + " for " + clientName(m.Worker)
	case objectstore.UnpinArgs:
		return "unpin the arguments of " + r.task(m.Task)
	case objectstore.SealObject:
		return "seal " + r.of(m.ID)
	case objectstore.DropAttempt:
		return fmt.Sprintf("drop what attempt %d wrote of %s", m.Attempt, r.of(m.ID))
	case objectstore.PinForGet:
		return "pin " + r.of(m.ID) + " for " + clientName(m.Client)
	}
	s := fmt.Sprintf("%T", m)
	return s[strings.LastIndexByte(s, '.')+1:]
}

// withNames puts names in the place of ids in a text.
func (r *story) withNames(s string) string {
	for id, name := range r.names {
		s = strings.ReplaceAll(s, id.String(), name)
	}
	return s
}

func (r *story) result(res wire.Result) string {
	switch res.Kind {
	case wire.ResultInline:
		return strconv.Quote(string(res.Value.Data))
	case wire.ResultStored:
		return "in the store"
	}
	return "an error: " + res.Err.Error()
}

func (r *story) task(id ids.TaskID) string {
	if n := r.names[id]; n != "" {
		return n
	}
	return id.String()
}

// of names an object: a task's first return by the task, others with a number.
func (r *story) of(id ids.ObjectID) string {
	if id.Index == 0 {
		return r.task(id.Task)
	}
	return fmt.Sprintf("%s.%d", r.task(id.Task), id.Index)
}
