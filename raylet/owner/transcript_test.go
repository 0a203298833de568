package owner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/record"
	"mobula/raylet/sched"
	"mobula/wire"
)

// TestTranscripts runs the scripts of testdata/transcripts: each block gives the owner one event, and below the dashes stands all that the
// owner then asks for. go test ./raylet/owner -run Transcripts -rewrite writes them anew.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		r := &transcript{script: newScript(t, Config{Transitions: true}), specs: make(map[string]*wire.TaskSpec), names: make(map[ids.TaskID]string)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			r.t, r.d, r.shown = t, d, nil
			r.run()
			if len(r.shown) == 0 {
				return "nothing\n"
			}
			return r.withNames(strings.Join(r.shown, "\n")) + "\n"
		})
	})
}

// transcript is a script whose tasks, actors and objects have names.
type transcript struct {
	*script
	d     *datadriven.TestData
	specs map[string]*wire.TaskSpec
	names map[ids.TaskID]string
	seqs  map[string]uint64
	shown []string
}

func (r *transcript) run() {
	switch r.d.Cmd {
	case "submit", "actor", "call":
		r.submitOne()
	case "get":
		r.fromDriver(&wire.Get{ID: r.object(0)})
	case "release":
		r.fromDriver(&wire.Release{IDs: []ids.ObjectID{r.object(0)}})
	case "cancel":
		r.fromDriver(&wire.Cancel{Task: r.spec(0).ID, Force: r.d.HasArg("force"), Recursive: r.d.HasArg("recursive")})
	case "kill-actor":
		r.fromDriver(&wire.KillActor{Actor: ids.ActorID(r.spec(0).ID), Restart: r.d.HasArg("restart")})
	case "grant":
		r.grant(r.client(r.d.CmdArgs[0].Key))
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
		r.give(FromStore{objectstore.ArgsPinned{Task: t.id(), Attempt: t.start, Ask: r.c.ask(t), Values: vs}})
	case "lost":
		r.give(FromStore{objectstore.Lost{ID: r.object(0)}})
	case "worker-dies":
		cl := r.client(r.d.CmdArgs[0].Key)
		held := slices.Clone(r.c.client(cl).leases)
		r.give(ClientGone{Client: cl})
		for _, l := range held {
			r.give(FromSched{sched.Revoked{Lease: l.id, Worker: cl, Err: errs.New(errs.CodeWorkerCrashed, "its process was killed")}})
		}
	case "worker-joins":
		r.give(ClientJoined{Client: r.client(r.d.CmdArgs[0].Key), Role: wire.RoleWorker})
	case "driver-exits":
		r.give(ClientGone{Client: driver})
	case "pass":
		wait, err := time.ParseDuration(r.d.CmdArgs[0].Key)
		if err != nil {
			r.d.Fatalf(r.t, "%v", err)
		}
		r.now += int64(wait)
		r.give(Timer{})
	default:
		r.d.Fatalf(r.t, "there is no command %q", r.d.Cmd)
	}
}

// submitOne is submit NAME, actor NAME or call NAME actor=A, with args=(NAME,...) retries=N restarts=N returns=N retry-exceptions.
func (r *transcript) submitOne() {
	name := r.d.CmdArgs[0].Key
	opts := &wire.TaskOptions{Func: name, NumReturns: 1}
	spec := r.script.spec(opts)
	switch r.d.Cmd {
	case "actor":
		spec.Kind, spec.Actor = wire.TaskActorCreate, ids.ActorID(spec.ID)
	case "call":
		spec.Kind, spec.Actor = wire.TaskActorCall, ids.ActorID(r.named(r.text("actor", "")).ID)
		if r.seqs == nil {
			r.seqs = make(map[string]uint64)
		}
		r.seqs[r.text("actor", "")]++
		spec.Seq = r.seqs[r.text("actor", "")]
	}
	opts.MaxRetries, opts.MaxRestarts, opts.MaxTaskRetries = r.number("retries"), r.number("restarts"), r.number("task-retries")
	opts.RetryExceptions = r.d.HasArg("retry-exceptions")
	if r.d.HasArg("func") {
		opts.Func = r.text("func", "")
	}
	for _, a := range r.d.CmdArgs {
		if a.Key == "args" {
			for _, arg := range a.Vals {
				spec.Args = append(spec.Args, wire.Arg{Ref: r.named(arg).ID.Return(0)})
			}
		}
	}
	r.specs[name], r.names[spec.ID] = spec, name
	r.fromDriver(&wire.Submit{Spec: spec})
}

// doneOne is done NAME value=V, done NAME stored, or done NAME error=MESSAGE.
func (r *transcript) doneOne() {
	t := r.c.tasks.task(r.spec(0).ID)
	m := &wire.Done{Task: t.id(), Attempt: t.start, Lease: t.lease.id, Times: wire.Times{Started: r.now, Ended: r.now + int64(5*time.Millisecond)}}
	switch {
	case r.d.HasArg("error"):
		m.Err = errs.New(errs.CodeTaskFailed, "%s", r.text("error", ""))
	case r.d.HasArg("stored"):
		m.Results = []wire.Result{{Kind: wire.ResultStored, Size: 1 << 20}}
	case t.isCreation():
	default:
		m.Results = []wire.Result{inline(r.text("value", "none"))}
	}
	r.give(FromClient{t.lease.worker.id, []wire.Msg{m}})
}

func (r *transcript) fromDriver(m wire.Msg) { r.give(FromClient{driver, []wire.Msg{m}}) }

func (r *transcript) give(ev Event) {
	r.step(ev)
	r.show()
}

func (r *transcript) named(name string) *wire.TaskSpec {
	s := r.specs[name]
	if s == nil {
		r.d.Fatalf(r.t, "nothing is called %q", name)
	}
	return s
}

func (r *transcript) spec(i int) *wire.TaskSpec { return r.named(r.d.CmdArgs[i].Key) }
func (r *transcript) object(i int) ids.ObjectID { return r.spec(i).ID.Return(0) }
func (r *transcript) text(key, def string) string {
	if !r.d.HasArg(key) {
		return def
	}
	var s string
	r.d.ScanArgs(r.t, key, &s)
	return s
}

func (r *transcript) number(key string) int32 {
	n, err := strconv.Atoi(r.text(key, "0"))
	if err != nil {
		r.d.Fatalf(r.t, "%s: %v", key, err)
	}
	return int32(n)
}

var clientNames = map[string]ids.ClientID{"driver": driver, "worker1": worker, "worker2": worker2, "worker3": 4}

func (r *transcript) client(name string) ids.ClientID {
	id, ok := clientNames[name]
	if !ok {
		r.d.Fatalf(r.t, "no client is called %q", name)
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
func (r *transcript) show() {
	for i := range r.out {
		if line := r.line(&r.out[i]); line != "" {
			r.shown = append(r.shown, line)
		}
	}
}

func (r *transcript) line(e *Effect) string {
	switch e.Kind {
	case ToClient:
		return clientName(e.Client) + " <- " + r.message(e.Wire)
	case ToStore:
		return "store <- " + r.message(e.Msg)
	case ToSched:
		return "scheduler <- " + r.message(e.Msg)
	case ToRegistry:
		return "registry <- " + r.message(e.Msg)
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

func (r *transcript) record(b []byte) string {
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

func (r *transcript) message(m any) string {
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
func (r *transcript) withNames(s string) string {
	for id, name := range r.names {
		s = strings.ReplaceAll(s, id.String(), name)
	}
	return s
}

func (r *transcript) result(res wire.Result) string {
	switch res.Kind {
	case wire.ResultInline:
		return strconv.Quote(string(res.Value.Data))
	case wire.ResultStored:
		return "in the store"
	}
	return "an error: " + res.Err.Error()
}

func (r *transcript) task(id ids.TaskID) string {
	if n := r.names[id]; n != "" {
		return n
	}
	return id.String()
}

// of names an object: a task's first return by the task, others with a number.
func (r *transcript) of(id ids.ObjectID) string {
	if id.Index == 0 {
		return r.task(id.Task)
	}
	return fmt.Sprintf("%s.%d", r.task(id.Task), id.Index)
}
