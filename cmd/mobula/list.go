package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mobula/internal/errs"
	"mobula/internal/labels"
	"mobula/internal/state"
)

// query are the flags of a list.
type query struct {
	filters []string
	limit   int
	cursor  string
	node    string
}

func (q *query) flags(c *cobra.Command) {
	c.Flags().StringArrayVarP(&q.filters, "filter", "f", nil, "FIELD=VALUE or FIELD!=VALUE; several must all hold")
	c.Flags().IntVarP(&q.limit, "limit", "n", state.DefaultLimit, fmt.Sprintf("rows to show, at most %d", state.MaxLimit))
	c.Flags().StringVar(&q.cursor, "cursor", "", "go on behind the page that gave it")
}

// nodeFlag lets a user choose one node of a cluster.
func nodeFlag(c *cobra.Command, node *string) {
	c.Flags().StringVar(node, "node", "", "only this node of the cluster, by its name or home (default: all)")
}

// build reads the flags and refuses fields that rows of type T do not have, before it asks the node.
func build[T any](q *query) (state.Query, error) {
	out := state.Query{Limit: q.limit, Cursor: q.cursor, Node: q.node}
	for _, s := range q.filters {
		f, err := state.ParseFilter(s)
		if err != nil {
			return out, err
		}
		out.Filters = append(out.Filters, f)
	}
	if out.Limit == 0 { // given as 0, so it is not the default
		return out, errs.New(errs.CodeInvalid, "--limit 0: want 1 to %d", state.MaxLimit)
	}
	return state.Check[T](out)
}

func (a *app) list() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List jobs, tasks, actors, objects, workers, graphs, nodes or components",
		Long: `List shows rows in pages: tasks, actors, jobs and graphs newest first, by when they were
submitted; the others ordered by id. It always says how many rows match in all, and how to
get those that a page leaves out. Filters compare a field, as --json names it. In a cluster
the rows are those of all nodes; a node that does not answer is named in a warning.`,
		Example: `  mobula list tasks --filter state=FAILED --limit 20
  mobula list tasks --watch 5s
  mobula list workers --json
  mobula list workers --node n2
  mobula list components --filter restarts!=0`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		lister(a, "jobs", "List the jobs that have not ended: those of drivers, and those that go on without one",
			"  mobula list jobs\n  mobula list jobs --filter failed!=0", state.MethodJobs, jobTable),
		lister(a, "tasks", "List the tasks that are remembered: those that have not ended, or whose results are referred to",
			"  mobula list tasks --filter state=PENDING_NODE_ASSIGNMENT\n  mobula list tasks --filter func=math/add --filter state!=FINISHED", state.MethodTasks, a.taskTable),
		lister(a, "actors", "List actors", "  mobula list actors --filter state=ALIVE\n  mobula list actors --filter name=hits", state.MethodActors, a.actorTable),
		lister(a, "objects", "List objects that something refers to", "  mobula list objects --filter state=STORED --limit 1000\n  mobula list objects --filter type=put", state.MethodObjects, objectTable),
		lister(a, "workers", "List worker processes and embedded slots", "  mobula list workers\n  mobula list workers --filter slot=isolated", state.MethodWorkers, workerTable),
		lister(a, "graphs", "List the task graphs that run", "  mobula list graphs\n  mobula list graphs --filter queued!=0", state.MethodGraphs, a.graphTable),
		lister(a, "nodes", "List the nodes of the cluster that have not stopped in order, and what they have free", "  mobula list nodes\n  mobula list nodes --filter state=SILENT", state.MethodNodes, a.nodeTable),
		lister(a, "components", "List the parts of the node in its supervision tree", "  mobula list components\n  mobula list components --filter kind=owner", state.MethodComponents, componentTable),
	)
	return c
}

// lister makes the command of one kind of row.
func lister[T any](a *app, kind, short, example, method string, table func(io.Writer, []T)) *cobra.Command {
	q, v := new(query), new(view)
	c := &cobra.Command{
		Use: kind, Short: short, Args: cobra.NoArgs, Example: example,
		Long: short + ".\n\nFields to filter by: " + strings.Join(state.Fields[T](), ", ") + ".",
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := build[T](q)
			if err != nil {
				return err
			}
			return show(a, v, c, func() (state.Page[T], error) { return request[state.Page[T]](a, method, in) }, func(w io.Writer, p *state.Page[T]) {
				if len(p.Rows) > 0 {
					table(w, p.Rows)
				}
				footer(w, len(p.Rows), p.Total, p.Next)
			})
		},
	}
	q.flags(c)
	if method != state.MethodNodes {
		nodeFlag(c, &q.node)
	}
	v.flag(c)
	return c
}

func jobTable(w io.Writer, js []state.Job) {
	var data [][]string
	var nodes []string
	for _, j := range js {
		nodes = append(nodes, j.Node)
		data = append(data, []string{j.ID, dash(j.PID), j.Namespace, strconv.FormatUint(j.Submitted, 10), strconv.FormatUint(j.Finished, 10), strconv.FormatUint(j.Failed, 10),
			strconv.FormatUint(j.Retried, 10), strconv.Itoa(j.Objects), counts(j.Tasks)})
	}
	rows(w, columns{
		nodes: nodes,
		head:  []string{"JOB", "DRIVER", "NAMESPACE", "SUBMITTED", "FINISHED", "FAILED", "RETRIED", "OBJECTS", "REMEMBERED"},
		right: []string{"DRIVER", "SUBMITTED", "FINISHED", "FAILED", "RETRIED", "OBJECTS"},
		less:  []string{"RETRIED", "NAMESPACE", "OBJECTS", "SUBMITTED", "FINISHED", "DRIVER"},
	}, data)
}

func (a *app) taskTable(w io.Writer, ts []state.Task) {
	var data [][]string
	var nodes []string
	for _, t := range ts {
		nodes = append(nodes, t.Node)
		data = append(data, []string{t.ID, t.Name, t.Kind, t.State, a.since(t.Submitted), a.since(t.Since), strconv.Itoa(int(t.Attempt)), t.Job, t.Worker, t.RunsOn, t.Callsite, t.Reason})
	}
	rows(w, columns{
		nodes: nodes,
		head:  []string{"TASK", "NAME", "KIND", "STATE", "AGE", "SINCE", "ATTEMPT", "JOB", "WORKER", "RUNS ON", "CALLED", "REASON"},
		right: []string{"AGE", "SINCE", "ATTEMPT", "JOB", "RUNS ON"},
		less:  []string{"CALLED", "WORKER", "ATTEMPT", "RUNS ON", "JOB", "KIND", "AGE", "REASON", "NAME", "SINCE"},
	}, data)
}

func (a *app) actorTable(w io.Writer, as []state.Actor) {
	var data [][]string
	var nodes []string
	for _, x := range as {
		nodes = append(nodes, x.Node)
		data = append(data, []string{x.ID, x.Type, x.Namespace, x.Name, x.State, a.since(x.Created), strconv.Itoa(x.Restarts), strconv.Itoa(x.Resets), strconv.Itoa(x.Pending), strconv.Itoa(x.Running), x.Job, x.Worker, x.RunsOn, dash(x.PID), x.Reason})
	}
	rows(w, columns{
		nodes: nodes,
		head:  []string{"ACTOR", "TYPE", "NAMESPACE", "NAME", "STATE", "AGE", "RESTARTS", "RESETS", "WAITING", "RUNNING", "JOB", "WORKER", "RUNS ON", "PID", "REASON"},
		right: []string{"AGE", "RESTARTS", "RESETS", "WAITING", "RUNNING", "JOB", "RUNS ON", "PID"},
		less:  []string{"PID", "RESETS", "JOB", "NAMESPACE", "WORKER", "RUNS ON", "WAITING", "RUNNING", "AGE", "RESTARTS", "REASON", "NAME", "TYPE"},
	}, data)
}

func objectTable(w io.Writer, os []state.Object) {
	var data [][]string
	var nodes []string
	for _, o := range os {
		nodes = append(nodes, o.Node)
		data = append(data, []string{o.ID, o.Type, o.State, o.Where, size(o.Size), strconv.Itoa(o.Holders), strconv.Itoa(o.Tasks), strconv.Itoa(o.Within), strconv.Itoa(o.Pins), o.Job, o.Func, o.Callsite, o.Error})
	}
	rows(w, columns{
		nodes: nodes,
		head:  []string{"OBJECT", "TYPE", "STATE", "WHERE", "SIZE", "HOLDERS", "TASKS", "WITHIN", "PINS", "JOB", "FUNC", "CALLED", "ERROR"},
		right: []string{"SIZE", "HOLDERS", "TASKS", "WITHIN", "PINS", "JOB"},
		less:  []string{"PINS", "WITHIN", "TASKS", "JOB", "CALLED", "HOLDERS", "FUNC", "WHERE", "TYPE", "ERROR", "STATE"},
	}, data)
}

func workerTable(w io.Writer, ws []state.Worker) {
	var data [][]string
	var nodes []string
	for _, x := range ws {
		nodes = append(nodes, x.Node)
		data = append(data, []string{x.ID, dash(x.PID), x.Job, x.Language, x.Slot, x.Func, x.State, strconv.Itoa(x.Leases), strconv.Itoa(x.Running), size(x.Heap), size(x.RSS)})
	}
	rows(w, columns{
		nodes: nodes,
		head:  []string{"WORKER", "PID", "JOB", "LANGUAGE", "SLOT", "FUNC", "STATE", "LEASES", "RUNNING", "HEAP", "RSS"},
		right: []string{"PID", "JOB", "LEASES", "RUNNING", "HEAP", "RSS"},
		less:  []string{"LEASES", "HEAP", "FUNC", "LANGUAGE", "JOB", "RSS", "RUNNING", "SLOT"},
	}, data)
}

func (a *app) graphTable(w io.Writer, gs []state.Graph) {
	var data [][]string
	var nodes []string
	for _, g := range gs {
		nodes = append(nodes, g.Node)
		data = append(data, []string{g.ID, g.Name, g.Job, strconv.Itoa(g.Tasks), strconv.Itoa(g.Waiting), strconv.Itoa(g.Queued), strconv.Itoa(g.Processing), strconv.Itoa(g.InLine),
			strconv.Itoa(g.Done), strconv.Itoa(g.Failed), size(g.Bytes), size(g.Peak), a.since(g.Started)})
	}
	rows(w, columns{
		nodes: nodes,
		head:  []string{"GRAPH", "NAME", "JOB", "TASKS", "WAITING", "QUEUED", "PROCESSING", "LINE", "DONE", "FAILED", "BYTES", "PEAK", "AGE"},
		right: []string{"JOB", "TASKS", "WAITING", "QUEUED", "PROCESSING", "LINE", "DONE", "FAILED", "BYTES", "PEAK", "AGE"},
		less:  []string{"LINE", "PEAK", "JOB", "NAME", "AGE", "BYTES", "QUEUED", "WAITING", "PROCESSING", "TASKS", "FAILED"},
	}, data)
}

func (a *app) nodeTable(w io.Writer, ns []state.Node) {
	var data [][]string
	for _, n := range ns {
		given := maps.Clone(n.Labels) // the others are the same on most nodes, and in --json
		maps.DeleteFunc(given, func(key, _ string) bool { return labels.Reserved(key) })
		store := ""
		if n.StoreLimit > 0 {
			store = size(n.StoreHeld) + " of " + size(n.StoreLimit)
		}
		data = append(data, []string{n.ID, n.Name, n.State, n.Role, time.Duration(n.Heard).Round(100 * time.Millisecond).String(), a.since(n.Started), dash(n.PID), n.Version, amounts(n.Resources, n.Free), store, labels.String(given), cmp.Or(n.Reached, n.Address)})
	}
	rows(w, columns{
		head:  []string{"HOME", "NAME", "STATE", "ROLE", "HEARD", "AGE", "PID", "VERSION", "RESOURCES", "STORE", "LABELS", "ADDRESS"},
		right: []string{"HEARD", "AGE", "PID"},
		less:  []string{"PID", "VERSION", "ADDRESS", "LABELS", "HEARD", "AGE", "ROLE", "STORE", "RESOURCES"},
	}, data)
}

// amounts are what a node has of each resource, with what is free where it has said so.
func amounts(total, free map[string]float64) string {
	all := make(map[string]state.Resource, len(total))
	known := true
	for name, n := range total {
		f, ok := free[name]
		all[name], known = state.Resource{Total: n, Free: f}, known && ok
	}
	if known {
		return resources(all)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(total)) {
		if name == "memory" {
			out = append(out, size(uint64(total[name]))+" memory")
		} else {
			out = append(out, fmt.Sprintf("%g %s", total[name], name))
		}
	}
	return strings.Join(out, ", ")
}

func componentTable(w io.Writer, cs []state.Component) {
	var data [][]string
	var nodes []string
	for _, c := range cs {
		nodes = append(nodes, c.Node)
		data = append(data, []string{c.Path, c.Kind, strconv.Itoa(c.Restarts), strconv.Itoa(c.Escalations), strconv.Itoa(c.Poisoned), strconv.Itoa(c.Depth), dash(c.Bound), strconv.FormatUint(c.Handled, 10), c.Error})
	}
	rows(w, columns{
		nodes: nodes,
		head:  []string{"COMPONENT", "KIND", "RESTARTS", "ESCALATED", "POISONED", "WAITING", "BOUND", "HANDLED", "LAST PANIC"},
		right: []string{"RESTARTS", "ESCALATED", "POISONED", "WAITING", "BOUND", "HANDLED"},
		less:  []string{"BOUND", "ESCALATED", "HANDLED", "POISONED", "KIND", "WAITING", "LAST PANIC"},
	}, data)
}
