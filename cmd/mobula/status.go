package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mobula/internal/labels"
	"mobula/internal/node/observe"
	"mobula/internal/state"
)

func (a *app) status() *cobra.Command {
	v := new(view)
	var in state.StatusRequest
	c := &cobra.Command{
		Use: "status", Short: "Show a node at a glance", Args: cobra.NoArgs,
		Long: `Status shows what a node has, what it runs, how full its object store is, and what had to
be restarted. A part that does not answer within a second is named instead of shown. Of a
cluster the line nodes tells how many nodes are alive, and what they have together.`,
		Example: `  mobula status
  mobula status --node n2
  mobula status --watch 5s
  mobula status --json | jq .store.held`,
		RunE: func(c *cobra.Command, _ []string) error {
			return show(a, v, c, func() (nodeStatus, error) { return a.statusOf(in) }, statusText)
		},
	}
	v.flag(c)
	c.Flags().StringVar(&in.Node, "node", "", "another node of the cluster, by its name or home")
	return c
}

// nodeStatus is a node's status, and the cluster at a glance.
type nodeStatus struct {
	state.Status
	Nodes *nodesStatus `json:"nodes,omitempty"` // of the cluster
}

// Missing are the nodes of the cluster that do not answer.
func (s *nodeStatus) Missing() []state.Unreachable {
	if s.Nodes == nil {
		return nil
	}
	return s.Nodes.Unreachable
}

// nodesStatus is the nodes of a cluster, taken together. Those that are not alive are named, and not counted in the resources.
type nodesStatus struct {
	States     map[string]int            `json:"states"` // numbers of nodes
	NotAlive   []string                  `json:"not_alive,omitempty"`
	Resources  map[string]state.Resource `json:"resources"`
	StoreLimit uint64                    `json:"store_limit"`
	StoreHeld  uint64                    `json:"store_held"`

	Unreachable []state.Unreachable `json:"unreachable,omitempty"`
}

// nodesWithin is how long a status waits for the list of nodes.
const nodesWithin = 3 * time.Second

// statusOf asks for a node's status, and of the cluster unless another node than this one is named.
func (a *app) statusOf(in state.StatusRequest) (s nodeStatus, err error) {
	if s.Status, err = request[state.Status](a, state.MethodStatus, in); err != nil || in.Node != "" {
		return s, err
	}
	b := *a
	b.timeout = min(a.timeout, nodesWithin)
	p, err := request[state.Page[state.Node]](&b, state.MethodNodes, state.Query{Limit: state.MaxLimit})
	switch {
	case err != nil: // the control plane may be away
		s.Silent = append(s.Silent, "nodes")
		return s, nil
	case len(p.Rows) < 2:
		return s, nil
	}
	c := &nodesStatus{States: map[string]int{}, Resources: map[string]state.Resource{}, Unreachable: p.Unreachable}
	for _, n := range p.Rows {
		if c.States[n.State]++; n.State != state.NodeAlive {
			c.NotAlive = append(c.NotAlive, n.Name)
			continue
		}
		for name, total := range n.Resources {
			r := c.Resources[name]
			c.Resources[name] = state.Resource{Total: r.Total + total, Free: r.Free + n.Free[name]}
		}
		c.StoreLimit, c.StoreHeld = c.StoreLimit+n.StoreLimit, c.StoreHeld+n.StoreHeld
	}
	s.Nodes = c
	return s, nil
}

// mostNames is how many names a line shows.
const mostNames = 8

// someOf names the first ones, and says how many there are besides.
func someOf(names []string) string {
	if more := len(names) - mostNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

func statusText(w io.Writer, s *nodeStatus) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("node", "%s, %s, process %d, up %s", s.Node, s.Version, s.PID, span(time.Duration(s.Now-s.Started)))
	line("address", "%s", s.Address)
	control := s.Control
	if s.Copies > 0 {
		control += fmt.Sprintf("; copies of each table: %d", s.Copies)
	}
	line("control", "%s", control)
	if s.Cluster != "" {
		line("cluster", "%s; role %s; other nodes reach it at %s", s.Cluster, s.Role, s.Reached)
	}
	if c := s.Nodes; c != nil {
		names := ""
		if len(c.NotAlive) > 0 {
			names = " (not alive: " + oneLine(someOf(c.NotAlive)) + ")"
		}
		line("nodes", "%s%s; %s; stores: %s of %s held", counts(c.States), names, resources(c.Resources), size(c.StoreHeld), size(c.StoreLimit))
	}
	if s.Metrics != "" {
		line("metrics", "%s, for the bearer token in %s", s.Metrics, filepath.Join(s.Dir, observe.TokenName))
	}
	line("resources", "%s", resources(s.Resources))
	line("labels", "%s", labels.String(s.Labels))
	line("leases", "%d; %d workers, %d clients", s.Leases, s.Workers, s.Clients)
	line("jobs", "%d", len(s.Jobs))
	for _, l := range s.Lost {
		line("lost", "job %s could not come back: %s; what is left of it is in %s, until you remove that", l.ID, oneLine(l.Why), l.Path)
	}
	line("tasks", "%s", counts(s.Tasks))
	line("actors", "%s", counts(s.Actors))
	line("graphs", "%s", graphs(s.Graphs))
	st := &s.Store
	line("store", "%s of %s held: %s sealed, %s being written; %s pinned, %s arguments of running tasks", size(st.Held), size(st.Limit),
		size(st.Sealed), size(st.Writing), size(st.Pinned), size(st.Args))
	if st.Asked != 0 {
		line("", "%s asked for: %s", size(st.Asked), oneLine(st.WhyLimit))
	}
	line("objects", "%d: %d in memory, %d only in spill storage; %d creates, %d argument sets and %d restores wait", st.Objects, st.InMemory,
		st.OnlySpilled, st.Waiting, st.WaitingArgs, st.Restoring)
	line("spill", "%s there now; %s written and %s read since the start; %d errors, %d objects lost", size(st.Spilled), size(st.SpilledEver),
		size(st.RestoredEver), st.SpillErrors, st.Lost)
	if st.SpillGarbage > 0 || st.Reclaimed > 0 {
		line("", "%s of objects that are gone, in files that have others; %s of such given back", size(st.SpillGarbage), size(st.Reclaimed))
	}
	for _, t := range st.SpillTargets {
		why := ""
		if t.Error != "" {
			why = ": " + oneLine(t.Error)
		}
		line("", "%s is %s%s", t.URL, t.Health, why)
	}
	line("restarts", "%s", counts(s.Restarts))
	line("events", "%d recorded, %d kept, %d left out, %d not written to files", s.Events.Recorded, s.Events.Kept, s.Events.Dropped, s.Events.Unfiled)
	if e := s.Export; e != (state.Export{}) {
		line("exported", "%d spans, %d exports of metrics, %d log records; given up: %d, %d and %d", e.Spans, e.Metrics, e.Logs, e.SpansDropped, e.MetricsDropped, e.LogsDropped)
	}
	if len(s.Silent) > 0 {
		line("silent", "%s: no answer in time; their part is missing above", strings.Join(s.Silent, ", "))
	}
	if len(s.Jobs) > 0 {
		fmt.Fprintln(w)
		var data [][]string
		for _, j := range s.Jobs {
			data = append(data, []string{j.ID, dash(j.PID), strconv.FormatUint(j.Submitted, 10), strconv.FormatUint(j.Finished, 10), strconv.FormatUint(j.Failed, 10), strconv.FormatUint(j.Retried, 10), counts(j.Tasks)})
		}
		rows(w, columns{
			head:  []string{"JOB", "DRIVER", "SUBMITTED", "FINISHED", "FAILED", "RETRIED", "REMEMBERED"},
			right: []string{"DRIVER", "SUBMITTED", "FINISHED", "FAILED", "RETRIED"},
			less:  []string{"RETRIED", "SUBMITTED", "FINISHED", "DRIVER"},
		}, data)
	}
	if len(s.Graphs) > 0 {
		fmt.Fprintln(w)
		var data [][]string
		for _, g := range s.Graphs {
			data = append(data, []string{g.Name, g.Job, strconv.Itoa(g.Tasks), strconv.Itoa(g.Waiting), strconv.Itoa(g.Queued), strconv.Itoa(g.Processing), strconv.Itoa(g.Done), strconv.Itoa(g.Failed), size(g.Bytes)})
		}
		rows(w, columns{
			head:  []string{"GRAPH", "JOB", "TASKS", "WAITING", "QUEUED", "PROCESSING", "DONE", "FAILED", "BYTES"},
			right: []string{"JOB", "TASKS", "WAITING", "QUEUED", "PROCESSING", "DONE", "FAILED", "BYTES"},
			less:  []string{"JOB", "BYTES", "QUEUED", "WAITING", "PROCESSING"},
		}, data)
	}
}

// graphs summarises the running graphs.
func graphs(gs []state.Graph) string {
	if len(gs) == 0 {
		return "none"
	}
	var waiting, queued, processing int
	for _, g := range gs {
		waiting, queued, processing = waiting+g.Waiting, queued+g.Queued, processing+g.Processing
	}
	return fmt.Sprintf("%d: %d tasks waiting, %d queued, %d processing", len(gs), waiting, queued, processing)
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func resources(m map[string]state.Resource) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		r := m[name]
		if name == "memory" {
			out = append(out, fmt.Sprintf("%s of %s memory free", size(uint64(max(0, r.Free))), size(uint64(max(0, r.Total)))))
		} else {
			out = append(out, fmt.Sprintf("%g of %g %s free", r.Free, r.Total, name))
		}
	}
	if len(out) == 0 {
		return "not known"
	}
	return strings.Join(out, ", ")
}
