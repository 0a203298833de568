package inspect

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
	"mobula/raylet/sched"
	"mobula/wire"
)

const explainDepth = 8 // tasks that wait for each other

// Explain says why a task is where it is, or who keeps an object.
func (n *Inspector) Explain(ctx context.Context, r state.ExplainRequest) (state.Explanation, error) {
	id, object, err := n.subject(r.ID)
	switch {
	case err != nil:
		return state.Explanation{}, err
	case object:
		return n.explainObject(ctx, id, explainDepth)
	}
	return n.explainTask(ctx, id.Task, explainDepth)
}

// subject reads the id of a task, or of an object. Python's ref.hex() of a release before 0.5 has as many digits as a task has now: it is
// taken for one where this node knows the job of the object, and not that of the task.
func (n *Inspector) subject(s string) (id ids.ObjectID, object bool, err error) {
	id, object, err = parseSubject(s)
	if err != nil || object || n.node.Owner(id.Task.Job()) != nil {
		return id, object, err
	}
	if raw, err := hex.DecodeString(s); err == nil && len(raw) == ids.TaskSize {
		if short, ok := ids.ObjectOf(raw); ok && n.node.Owner(short.Task.Job()) != nil {
			return short, true, nil
		}
	}
	return id, false, nil
}

// HomeOf is the home of the job of a task or an object: there it is explained.
func (n *Inspector) HomeOf(id string) (ids.Home, error) {
	of, _, err := n.subject(id)
	return of.Task.Job().Home(), err
}

// parseSubject reads the id of a task, or of an object.
func parseSubject(s string) (id ids.ObjectID, object bool, err error) {
	if strings.Contains(s, ":") || len(s) == 2*len(ids.TaskID{})+8 {
		if id, err = parseObject(s); err != nil {
			err = errs.New(errs.CodeInvalid, "%v", err)
		}
		return id, true, err
	}
	if id.Task, err = ids.ParseTask(s); err != nil {
		err = errs.New(errs.CodeInvalid, "%v; an object is TASK:INDEX, or the 48 digits of its hex()", err)
	}
	return id, false, err
}

// parseObject reads an object's id as it is printed, or the 48 digits of Python's ref.hex(): the task, and the index in 8.
func parseObject(s string) (ids.ObjectID, error) {
	n := 2 * len(ids.TaskID{})
	if strings.Contains(s, ":") || len(s) != n+8 {
		return ids.ParseObject(s)
	}
	index, err := strconv.ParseUint(s[n:], 16, 32)
	if err != nil {
		return ids.ObjectID{}, fmt.Errorf("object %q: want %d hexadecimal digits", s, n+8)
	}
	t, err := ids.ParseTask(s[:n])
	return ids.ObjectID{Task: t, Index: uint32(index)}, err
}

// ownerOf finds who would know.
func (n *Inspector) ownerOf(job ids.JobID, id string) (*Owner, error) {
	if o := n.node.Owner(job); o != nil {
		return o, nil
	}
	return nil, errs.New(errs.CodeNotFound, "%s is of job %v, which this node does not know: it has ended, or the id is of another node", id, job)
}

func (n *Inspector) explainTask(ctx context.Context, id ids.TaskID, depth int) (ex state.Explanation, err error) {
	o, err := n.ownerOf(id.Job(), "task "+id.String())
	if err != nil {
		return ex, err
	}
	if ex, found, err := explainCall(ctx, n, o, id); found || err != nil {
		return ex, err
	}
	found, err := n.taskIn(ctx, o, id)
	switch {
	case err != nil:
		return ex, err
	case found == nil:
		if ex, known := explainCame(n, id); known {
			return ex, nil
		}
		return n.explainGone(id)
	}
	w := *found
	row := n.taskRow(&w.TaskView)
	ex = state.Explanation{ID: row.ID, Kind: "task", State: row.State, Task: &row}
	ex.Summary, err = n.taskSummary(ctx, &ex, &w, depth)
	if w.Held {
		ex.Details = append(ex.Details, "its owner restarted and waits for its clients to say what they hold")
	}
	return ex, err
}

// explainGone tells of a task that nothing refers to any more what the events remember.
func (n *Inspector) explainGone(id ids.TaskID) (state.Explanation, error) {
	parts, _, _ := n.node.Parts().Events.Since(0)
	for p := len(parts) - 1; p >= 0; p-- {
		for i := len(parts[p]) - 1; i >= 0; i-- {
			if e := &parts[p][i]; e.Task == id {
				return state.Explanation{ID: id.String(), Kind: "task", State: e.State.String(), Summary: fmt.Sprintf(
					"%s came into %s %v ago; nothing refers to it any more", e.Opts.Func, e.State, n.ago(e.At))}, nil
			}
		}
	}
	return state.Explanation{}, errs.New(errs.CodeNotFound, "task %v is not known: it has ended and nothing refers to its results, or there never was one", id)
}

func (n *Inspector) ago(at int64) time.Duration {
	return time.Duration(n.Clock.Now() - at).Round(time.Millisecond)
}

func (n *Inspector) in(at int64) time.Duration {
	return max(-n.ago(at), 0).Round(100 * time.Millisecond)
}

// taskSummary is the answer in a line; details and what comes before it are added to ex.
func (n *Inspector) taskSummary(ctx context.Context, ex *state.Explanation, w *owner.TaskWhy, depth int) (string, error) {
	since := n.ago(w.Since)
	switch w.State {
	case task.PendingArgs:
		return n.waitsForArgs(ctx, ex, w, depth)
	case task.PendingActor:
		return n.actorTurn(ex, w), nil
	case task.PendingNode:
		return n.waitsForSlot(ctx, ex, w)
	case task.PendingFetch, task.PendingStore:
		err := n.argsInStore(ctx, ex, w)
		return fmt.Sprintf("has a slot on worker %v and waits since %v for the store to have its arguments in memory", w.Worker, since), err
	case task.Backoff:
		if w.Kind == wire.TaskActorCreate {
			return fmt.Sprintf("restarting in %v: %s", n.in(w.Due), reason(w.Reason)), nil
		}
		return fmt.Sprintf("runs again in %v: %s", n.in(w.Due), reason(w.Reason)), nil
	case task.Submitted:
		what := "waits there for its turn"
		if w.Of != nil && w.Of.Shared {
			what = "runs there or waits for its turn" // behind calls of which this job's owner does not know
		}
		return fmt.Sprintf("was pushed to %s %v ago and %s", n.workerName(w.Worker), since, what), nil
	case task.Running, task.RunningInGet:
		what := "runs"
		switch {
		case w.State == task.RunningInGet:
			what = "waits in a get, its CPU given back,"
		case w.Kind == wire.TaskActorCall:
			return fmt.Sprintf("runs on %s, to which it was pushed %v ago, attempt %d", n.workerName(w.Worker), since, w.Attempt), nil
		}
		return fmt.Sprintf("%s on %s since %v, attempt %d", what, n.workerName(w.Worker), since, w.Attempt), nil
	case task.Finished:
		return fmt.Sprintf("finished %v ago", since), nil
	}
	return fmt.Sprintf("%s %v ago: %s", strings.ToLower(w.State.String()), since, reason(w.Reason)), nil
}

func reason(err *errs.Error) string {
	if err == nil {
		return "no reason is known"
	}
	return err.Error()
}

func (n *Inspector) workerName(id ids.ClientID) string {
	s := n.node.Client(id)
	switch {
	case s == nil:
		return fmt.Sprintf("worker %v, which is gone", id)
	case s.Local:
		return fmt.Sprintf("embedded worker %v", id)
	case s.PID == 0:
		return fmt.Sprintf("worker %v on node %v", id, n.node.NameOf(id.Home()))
	}
	return fmt.Sprintf("worker %v (process %d)", id, s.PID)
}

// waitsForArgs names the arguments that are not there, and explains the first one's producer.
func (n *Inspector) waitsForArgs(ctx context.Context, ex *state.Explanation, w *owner.TaskWhy, depth int) (string, error) {
	missing := 0
	for _, a := range w.Args {
		if a.State.Resolved() {
			continue
		}
		if missing++; missing <= 10 {
			ex.Details = append(ex.Details, fmt.Sprintf("argument %v is %s", a.ID, a.State))
		}
		if ex.Next == nil && depth > 0 {
			next, err := n.explainObject(ctx, a.ID, depth-1)
			if err == nil {
				ex.Next = &next
			} else {
				ex.Details = append(ex.Details, err.Error())
			}
		}
	}
	if missing > 10 {
		ex.Details = append(ex.Details, fmt.Sprintf("and %d further arguments", missing-10))
	}
	if missing == 0 {
		return "its arguments are there; it is about to queue", nil
	}
	return fmt.Sprintf("waits since %v for %d of %d arguments", n.ago(w.Since), missing, len(w.Args)), nil
}

func (n *Inspector) actorTurn(ex *state.Explanation, w *owner.TaskWhy) string {
	a := w.Of
	if a == nil {
		return "waits for its actor"
	}
	name := aboutActor(ex, a)
	switch {
	case a.Due != 0:
		return fmt.Sprintf("waits for %s, restarting in %v: %s", name, n.in(a.Due), reason(a.Cause))
	case a.State != actor.Alive:
		return fmt.Sprintf("waits for %s, which is %s", name, a.State)
	case w.Queued > 0:
		return fmt.Sprintf("waits for its turn on %s behind %s", name, places(w.Ahead))
	}
	return "waits for an earlier call of the same caller to " + name
}

// aboutActor adds what is known of the actor of a call, and gives its name.
func aboutActor(ex *state.Explanation, a *owner.ActorView) string {
	name := fmt.Sprintf("actor %v (%s)", a.ID, taskName(a.Opts))
	ex.Details = append(ex.Details, fmt.Sprintf("%s is %s, restarted %d times and %d times more because of others, with %d calls that have not ended, %d of them not pushed", name, a.State, a.Restarts, a.Resets, a.Pending, a.Queued))
	return name
}

func places(n int) string {
	if n < 0 {
		return "more than 10,000 others"
	}
	return fmt.Sprintf("%d others", n)
}

// waitsForSlot asks the scheduler what the task's class lacks.
func (n *Inspector) waitsForSlot(ctx context.Context, ex *state.Explanation, w *owner.TaskWhy) (string, error) {
	class := w.Class
	sx, err := inRaylet(ctx, n, func(c *raylet.Core) sched.Explanation { return c.Explain(class) })
	if err != nil {
		return "waits for a slot", err
	}
	ex.TaskClass = uint64(class.Class)
	ex.Details = append(ex.Details, "it asks for "+ex.Task.Shape, n.schedulerName()+": "+sx.Text)
	if w.Infeasible != nil {
		return "can never run here: " + w.Infeasible.Error(), nil
	}
	waits, err := inCluster(ctx, n, func(c *cluster.Core) (out string) {
		if why, left := c.Lacks(class); why != nil {
			out = fmt.Sprintf("waits up to %v more for a node that can run it: %v", left.Round(100*time.Millisecond), why.Msg)
		}
		return out
	})
	if waits != "" || err != nil {
		return waits, err
	}
	var lacks []string
	for _, m := range sx.Missing {
		r := func(v int64) float64 { return Units(wire.Resource{Name: m.Resource, Amount: v}) }
		lacks = append(lacks, fmt.Sprintf("%g %s (%g of %g free)", r(m.Asked), m.Resource, r(max(m.Free, 0)), r(m.Held)))
	}
	at := fmt.Sprintf("behind %s of %d in its queue, which has %d leases", places(w.Ahead), w.Queued, w.Leases)
	if len(lacks) > 0 {
		return fmt.Sprintf("waits since %v for %s, %s", n.ago(w.Since), strings.Join(lacks, " and "), at), nil
	}
	return fmt.Sprintf("waits since %v for a slot, %s", n.ago(w.Since), at), nil
}

// schedulerName is how this node's scheduler is called.
func (n *Inspector) schedulerName() string {
	if name := n.node.Listed(); name != "" {
		return "scheduler of node " + name
	}
	return "scheduler"
}

// ClassRequest asks what a node's scheduler knows of the tasks like one: by their class, which another node knows them by as well.
type ClassRequest struct {
	Task  string
	Class uint64
}

// ClassReply answers a ClassRequest.
type ClassReply struct{ Text string } // empty: the scheduler knows nothing of the class

// Class says what this node's scheduler knows of a class of tasks, most likely of another node's job.
func (n *Inspector) Class(ctx context.Context, r ClassRequest) (out ClassReply, err error) {
	id, err := ids.ParseTask(r.Task)
	if err != nil {
		return out, errs.New(errs.CodeInvalid, "%v", err)
	}
	key := sched.ClassKey{Job: id.Job(), Class: sched.Class(r.Class)}
	sx, err := inRaylet(ctx, n, func(c *raylet.Core) sched.Explanation { return c.Explain(key) })
	if sx.Known {
		out.Text = sx.Text
	}
	return out, err
}

func (n *Inspector) argsInStore(ctx context.Context, ex *state.Explanation, w *owner.TaskWhy) error {
	for i, a := range w.Args {
		if a.State != object.Stored {
			continue
		}
		if i == 10 {
			ex.Details = append(ex.Details, "and further arguments")
			break
		}
		lines, err := n.node.Parts().Store.Why(ctx, a.ID)
		if err != nil {
			return err
		}
		ex.Details = append(ex.Details, fmt.Sprintf("argument %v: %s", a.ID, strings.Join(lines, "; ")))
	}
	return nil
}

func (n *Inspector) explainObject(ctx context.Context, id ids.ObjectID, depth int) (ex state.Explanation, err error) {
	o, err := n.ownerOf(id.Job(), "object "+id.String())
	if err != nil {
		return ex, err
	}
	found, err := InOwner(ctx, o, func(c *owner.Core) *owner.ObjectWhy {
		if w, ok := c.WhyObject(id); ok {
			return &w
		}
		return nil
	})
	switch {
	case err != nil:
		return ex, err
	case found == nil:
		if ex, known, err := explainResult(ctx, n, o, id); known || err != nil {
			return ex, err
		}
		return ex, errs.New(errs.CodeNotFound, "object %v is not known: nothing refers to it any more, or there never was one", id)
	}
	w := *found
	rows := []state.Object{n.objectRow(&w.ObjectView)}
	if err := n.whereabouts(ctx, []owner.ObjectView{w.ObjectView}, rows); err != nil {
		return ex, err
	}
	ex = state.Explanation{ID: id.String(), Kind: "object", State: w.State.String(), Object: &rows[0]}
	n.holders(&ex, &w)
	switch {
	case w.Makes:
		ex.Summary = fmt.Sprintf("is not there yet: its task %v (%s) is %s", w.Task.ID, w.Task.Opts.Func, w.Task.State)
		if depth > 0 {
			if next, err := n.explainTask(ctx, id.Task, depth-1); err == nil {
				ex.Next = &next
			}
		}
	case w.Err != nil:
		ex.Summary = "stands for an error: " + w.Err.Error()
	case w.State == object.Freed:
		ex.Summary = "its value was freed; what makes it is kept because other results may need it"
	default:
		ex.Summary = fmt.Sprintf("%d bytes in %s, kept by %d processes, %d tasks and %d other objects", rows[0].Size, rows[0].Where, w.Holders, w.Tasks, w.Within)
	}
	if w.State == object.Stored {
		lines, err := n.node.Parts().Store.Why(ctx, id)
		if err != nil {
			return ex, err
		}
		for _, l := range lines {
			ex.Details = append(ex.Details, "store: "+l)
		}
	}
	return ex, nil
}

// holders says who keeps the object.
func (n *Inspector) holders(ex *state.Explanation, w *owner.ObjectWhy) {
	for _, id := range w.Clients {
		who := fmt.Sprintf("client %v", id)
		if s := n.node.Client(id); s != nil {
			switch s.Role {
			case wire.RoleDriver:
				who = fmt.Sprintf("the driver of job %v (process %d)", s.Job, s.PID)
			case wire.RoleWorker:
				who = n.workerName(id)
			}
		}
		ex.Details = append(ex.Details, "held by "+who)
	}
	for i, node := range w.On {
		what := "a copy is"
		if i == 0 {
			what = "it is kept"
		}
		ex.Details = append(ex.Details, what+" on node "+n.node.NameOf(node))
	}
	if w.Holders > len(w.Clients) {
		ex.Details = append(ex.Details, fmt.Sprintf("and by %d further processes", w.Holders-len(w.Clients)))
	}
	for _, c := range []struct {
		n    int
		what string
	}{{w.Tasks, "unfinished tasks use it"}, {w.Within, "live objects contain it"}, {w.Waiting, "tasks and gets wait for it"}, {w.Lineage, "kept tasks may need it to run again"}} {
		if c.n > 0 {
			ex.Details = append(ex.Details, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
}
