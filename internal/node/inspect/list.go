package inspect

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/raylet/pool"
	"mobula/telemetry/events"
	"mobula/wire"
)

// Tasks goes through the tasks of every owner. Rows are made of those on the page, and
// of those that a filter needs a row for.
func (n *Inspector) Tasks(ctx context.Context, q state.Query) (page state.List[state.Task], err error) {
	if q, err = state.Check[state.Task](q); err != nil {
		return page, err
	}
	pass, err := n.taskFilters(q.Filters)
	if err != nil {
		return page, err
	}
	var after *owner.TaskView
	if q.Cursor != "" {
		after = new(owner.TaskView)
		if after.Born, after.ID, err = parsePlace(q.Cursor); err != nil {
			return page, err
		}
	}
	pager := state.NewPager(q.Limit, after, func(a, b owner.TaskView) int { return newest(a.Born, b.Born, a.ID, b.ID) })
	for _, o := range n.node.Owners() {
		if !jobPasses(q.Filters, o.Job) {
			continue
		}
		calls, err := underway(ctx, n, o)
		for i := range calls.views {
			if v := &calls.views[i]; pass.state(v.State) && pass.passes(v) {
				pager.Add(*v)
			}
		}
		if err == nil {
			err = scanOwner(ctx, n, o, func(c *owner.Core) *owner.Scan { return c.ScanTasks(scanPart) },
				func(s *owner.Scan, p *rowsOf[owner.TaskView]) bool {
					return s.NextTasks(pass.keep(pager.Bound(), calls.at, &p.skipped), func(v owner.TaskView) { p.rows = append(p.rows, v) })
				}, func(p *rowsOf[owner.TaskView]) {
					pager.Skip(p.skipped)
					for i := range p.rows {
						if pass.passes(&p.rows[i]) {
							pager.Add(p.rows[i])
						}
					}
				})
		}
		if err != nil && !n.ended(o) {
			return page, err
		}
	}
	rows, total, more := pager.Rows()
	p := state.Page[state.Task]{Total: total, Truncated: more, Rows: make([]state.Task, len(rows))}
	for i := range rows {
		p.Rows[i] = n.taskRow(&rows[i])
	}
	return state.NewList(p, func(i int) string { return placeOf(rows[i].Born, rows[i].ID) }), nil
}

// newest is the order of what was submitted: the last first.
func newest(bornA, bornB int64, a, b ids.TaskID) int {
	return cmp.Or(cmp.Compare(bornB, bornA), bytes.Compare(a[:], b[:]))
}

// timeOf is the time of a submission. Of those in the log of an older version only the order is known: 0.
func timeOf(born int64) int64 {
	if born < int64(24*time.Hour) {
		return 0
	}
	return born
}

// placeOf is a place in that order, for a cursor.
func placeOf(born int64, id ids.TaskID) string { return fmt.Sprintf("%d/%s", born, id) }

func parsePlace(cursor string) (born int64, id ids.TaskID, err error) {
	var text string
	if _, err = fmt.Sscanf(cursor, "%d/%s", &born, &text); err == nil {
		id, err = ids.ParseTask(text)
	}
	if err != nil {
		err = errs.New(errs.CodeInvalid, "cursor %q: want the \"next\" of the page before", cursor)
	}
	return born, id, err
}

// ended tells whether an owner's job is over: a list goes on without it.
func (n *Inspector) ended(o *Owner) bool { return n.node.Owner(o.Job) != o }

// jobPasses spares owners that no row can come from.
func jobPasses(filters []state.Filter, job ids.JobID) bool {
	for _, f := range filters {
		if f.Field == "job" && (f.Value == job.String()) == f.Not {
			return false
		}
	}
	return true
}

// taskTest is the filters of a list of tasks, in two parts: by state, which is looked at on
// the owner's goroutine, and the rest, which is not.
type taskTest struct {
	states []func(task.State) bool
	rest   []func(*owner.TaskView) bool
	slow   []state.Filter // those that need a row
	row    func(*owner.TaskView) state.Task
}

func (n *Inspector) taskFilters(filters []state.Filter) (*taskTest, error) {
	t := &taskTest{row: n.taskRow}
	for _, f := range filters {
		var field func(*owner.TaskView) string
		switch f.Field {
		case "state":
			st, err := parseTaskState(f.Value)
			if err != nil {
				return nil, err
			}
			t.states = append(t.states, func(s task.State) bool { return (s == st) != f.Not })
			continue
		case "func":
			field = func(v *owner.TaskView) string { return v.Opts.Func }
		case "name":
			field = func(v *owner.TaskView) string { return taskName(v.Opts) }
		case "kind":
			field = func(v *owner.TaskView) string { return events.KindName(v.Kind) }
		default:
			t.slow = append(t.slow, f)
			continue
		}
		t.rest = append(t.rest, func(v *owner.TaskView) bool { return (field(v) == f.Value) != f.Not })
	}
	return t, nil
}

// state is the part of the filters by state.
func (t *taskTest) state(st task.State) bool {
	for _, pass := range t.states {
		if !pass(st) {
			return false
		}
	}
	return true
}

// keep says which tasks a part of a scan makes views of: none of those that others know more of. Where the state decides alone, tasks behind
// bound, which cannot come on the page, are only counted.
func (t *taskTest) keep(bound *owner.TaskView, others map[ids.TaskID]*talk.Underway, skipped *int) func(*ids.TaskID, int64, task.State) bool {
	alone := len(t.rest)+len(t.slow) == 0
	return func(id *ids.TaskID, born int64, st task.State) bool {
		if !t.state(st) || len(others) > 0 && others[*id] != nil {
			return false
		}
		if alone && bound != nil && newest(born, bound.Born, *id, bound.ID) > 0 {
			*skipped++
			return false
		}
		return true
	}
}

// passes is the rest of the filters.
func (t *taskTest) passes(v *owner.TaskView) bool {
	for _, pass := range t.rest {
		if !pass(v) {
			return false
		}
	}
	if len(t.slow) == 0 {
		return true
	}
	row := t.row(v)
	return state.Pass(&row, t.slow)
}

func taskName(o *wire.TaskOptions) string {
	if o.Label != "" {
		return o.Label
	}
	return o.Func
}

func (n *Inspector) taskRow(v *owner.TaskView) state.Task {
	r := state.Task{
		ID: v.ID.String(), Name: taskName(v.Opts), Func: v.Opts.Func, Kind: events.KindName(v.Kind), State: v.State.String(),
		Job: v.ID.Job().String(), Attempt: v.Attempt, Submitted: timeOf(v.Born), Since: v.Since, Node: n.node.Listed(),
	}
	if v.Kind != wire.TaskActorCall && v.HasOpts() {
		if shape, err := cluster.ShapeOf(v.Opts, v.Kind); err == nil {
			r.Shape = shape.String()
		}
	}
	if v.Worker != 0 {
		r.Worker, r.RunsOn = v.Worker.String(), v.Worker.Home().String()
	}
	if !v.Actor.IsZero() {
		r.Actor = v.Actor.String()
	}
	if v.Spec != nil {
		r.Parent, r.Callsite = v.Spec.Parent.String(), v.Spec.Callsite
	}
	if v.Reason != nil {
		r.Reason = v.Reason.Error()
	}
	return r
}

// Actors lists every owner's own actors.
func (n *Inspector) Actors(ctx context.Context, q state.Query) (page state.List[state.Actor], err error) {
	if q, err = state.Check[state.Actor](q); err != nil {
		return page, err
	}
	var after *owner.ActorView
	if q.Cursor != "" {
		born, id, err := parsePlace(q.Cursor)
		if err != nil {
			return page, err
		}
		after = &owner.ActorView{Born: born, ID: ids.ActorID(id)}
	}
	pager := state.NewPager(q.Limit, after, func(a, b owner.ActorView) int { return newest(a.Born, b.Born, ids.TaskID(a.ID), ids.TaskID(b.ID)) })
	for _, o := range n.node.Owners() {
		if !jobPasses(q.Filters, o.Job) {
			continue
		}
		all, err := InOwner(ctx, o, func(c *owner.Core) (found []owner.ActorView) {
			c.Actors(func(a owner.ActorView) bool { found = append(found, a); return true })
			return found
		})
		if err != nil && !n.ended(o) {
			return page, err
		}
		calls, err := underway(ctx, n, o)
		if err != nil && !n.ended(o) {
			return page, err
		}
		for _, a := range all {
			if seen := calls.actors[a.ID]; seen != nil {
				a = *seen
			}
			if row := n.actorRow(&a); !a.Foreign && state.Pass(&row, q.Filters) {
				pager.Add(a)
			}
		}
	}
	rows, total, more := pager.Rows()
	p := state.Page[state.Actor]{Total: total, Truncated: more, Rows: make([]state.Actor, len(rows))}
	for i := range rows {
		p.Rows[i] = n.actorRow(&rows[i])
	}
	return state.NewList(p, func(i int) string { return placeOf(rows[i].Born, ids.TaskID(rows[i].ID)) }), nil
}

func (n *Inspector) actorRow(v *owner.ActorView) state.Actor {
	r := state.Actor{
		ID: v.ID.String(), Type: taskName(v.Opts), Name: v.Opts.ActorName, Namespace: v.Opts.Namespace, State: v.State.String(),
		Job: v.ID.Job().String(), Detached: v.Opts.Detached, Created: timeOf(v.Born), Restarts: v.Restarts, Resets: v.Resets, Due: v.Due, Pending: v.Queued, Running: v.Pending - v.Queued,
		Node: n.node.Listed(),
	}
	if v.Worker != 0 {
		r.Worker, r.RunsOn = v.Worker.String(), v.Worker.Home().String()
		if s := n.node.Client(v.Worker); s != nil {
			r.PID = int(s.PID)
		}
	}
	if v.Cause != nil {
		r.Reason = v.Cause.Error()
	}
	return r
}

// Workers lists worker processes, and the slots of an embedded node.
func (n *Inspector) Workers(ctx context.Context, q state.Query) (page state.List[state.Worker], err error) {
	if q, err = state.Check[state.Worker](q); err != nil {
		return page, err
	}
	infos, err := inRaylet(ctx, n, (*raylet.Core).Workers)
	if err != nil {
		return page, err
	}
	var rows []state.Worker
	for _, w := range infos {
		rows = append(rows, n.workerRow(&w))
	}
	for _, s := range n.node.Clients() {
		if s.Role == wire.RoleWorker && s.Local && !s.System { // the node's own functions run in no worker that tasks get
			r := state.Worker{ID: s.ID.String(), PID: int(s.PID), Job: s.Job.String(), Language: wire.LangGo, Slot: "embedded", State: "ready", Node: n.node.Listed()}
			n.addReport(&r, s.ID)
			rows = append(rows, r)
		}
	}
	page = state.Select(q, rows, func(w *state.Worker) string { return w.ID })
	for i := range page.Rows {
		page.Rows[i].RSS = rss(page.Rows[i].PID)
	}
	return page, nil
}

func (n *Inspector) workerRow(w *pool.Info) state.Worker {
	r := state.Worker{
		ID: w.Client.String(), PID: int(w.PID), Job: w.Job.String(), Language: w.Language, Slot: w.Slot.String(), Func: w.Func, State: w.State.String(),
		Leases: len(w.Leases), Node: n.node.Listed(),
	}
	if w.Client == 0 {
		r.ID = "worker/" + w.Worker.String() // it has not registered
	}
	for _, l := range w.Leases {
		r.LeaseIDs = append(r.LeaseIDs, uint64(l))
	}
	n.addReport(&r, w.Client)
	return r
}

func (n *Inspector) addReport(r *state.Worker, id ids.ClientID) {
	if st, ok := n.node.Report(id); ok {
		r.Heap, r.Goroutines, r.Running = st.HeapBytes, int(st.Goroutines), int(st.Running)
	}
}

// Graphs lists the task graphs that run.
func (n *Inspector) Graphs(_ context.Context, q state.Query) (page state.List[state.Graph], err error) {
	if q, err = state.Check[state.Graph](q); err != nil {
		return page, err
	}
	rows := n.node.Graphs()
	for i := range rows {
		rows[i].Node = n.node.Listed()
	}
	return state.SelectLast(q, rows, func(g *state.Graph) string { return fmt.Sprintf("%020d/%s", g.Started, g.ID) }), nil
}

// Jobs lists the jobs that have not ended. A job whose owner does not answer is an error: its row would be wrong.
func (n *Inspector) Jobs(ctx context.Context, q state.Query) (page state.List[state.Job], err error) {
	if q, err = state.Check[state.Job](q); err != nil {
		return page, err
	}
	g := n.newGather(ctx)
	for _, ow := range n.node.Owners() {
		g.job(ow)
	}
	g.wg.Wait()
	if len(g.out.Silent) > 0 {
		return page, errs.New(errs.CodeDeadline, "%s: no answer within %v", strings.Join(g.out.Silent, ", "), partTime)
	}
	return state.SelectLast(q, g.out.Jobs, func(j *state.Job) string { return fmt.Sprintf("%010s", j.ID) }), nil
}

// Components lists the parts of the node in its supervision tree.
func (n *Inspector) Components(_ context.Context, q state.Query) (page state.List[state.Component], err error) {
	if q, err = state.Check[state.Component](q); err != nil {
		return page, err
	}
	rows := n.Tree()
	for i := range rows {
		rows[i].Node = n.node.Listed()
	}
	return state.Select(q, rows, func(c *state.Component) string { return c.Path }), nil
}

// byID and bySize are the orders of objects.
func byID(a, b owner.ObjectView) int { return a.ID.Compare(b.ID) }

func bySize(a, b owner.ObjectView) int {
	return cmp.Or(cmp.Compare(b.Size, a.Size), byID(a, b))
}
