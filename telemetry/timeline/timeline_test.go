package timeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/owner/task"
	"mobula/telemetry/events"
	"mobula/wire"
)

var opts = &wire.TaskOptions{Func: "math/add"}

func id(n uint64) ids.TaskID { return ids.Derive(ids.RootTask(3, 1), n) }

type document struct {
	Unit  string           `json:"displayTimeUnit"`
	Other map[string]any   `json:"otherData"`
	Trace []map[string]any `json:"traceEvents"`
}

func write(t interface{ Fatal(...any) }, in Input) document {
	var b bytes.Buffer
	if err := Write(&b, in); err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err, b.String())
	}
	return d
}

// schema holds a document to what Chrome's format asks of each kind of record.
func schema(t interface{ Errorf(string, ...any) }, d document) {
	if d.Unit != "ms" || len(d.Trace) == 0 {
		t.Errorf("unit %q, %d records", d.Unit, len(d.Trace))
	}
	named := map[float64]bool{}
	open := map[string]int{}
	type slice struct{ start, end float64 }
	lanes := map[[2]float64][]slice{}
	for _, r := range d.Trace {
		ph, _ := r["ph"].(string)
		ts, tsOK := r["ts"].(float64)
		pid, pidOK := r["pid"].(float64)
		tid, tidOK := r["tid"].(float64)
		name, _ := r["name"].(string)
		if !tsOK || !pidOK || !tidOK || name == "" || ts < 0 {
			t.Errorf("record without name, ts, pid or tid: %v", r)
		}
		switch ph {
		case "M":
			if name == "process_name" {
				named[pid] = true
			}
			if args, _ := r["args"].(map[string]any); len(args) == 0 {
				t.Errorf("metadata that says nothing: %v", r)
			}
		case "X":
			dur, ok := r["dur"].(float64)
			if !ok || dur < 0 || !named[pid] {
				t.Errorf("complete slice without duration or named process: %v", r)
			}
			lanes[[2]float64{pid, tid}] = append(lanes[[2]float64{pid, tid}], slice{ts, ts + dur})
		case "b", "e":
			id, _ := r["id"].(string)
			if id == "" || r["cat"] == nil || !named[pid] {
				t.Errorf("asynchronous record without id or category: %v", r)
			}
			if ph == "b" {
				open[id+name]++
			} else if open[id+name]--; open[id+name] < 0 {
				t.Errorf("an end without a begin: %v", r)
			}
		default:
			t.Errorf("record of kind %q", ph)
		}
	}
	for k, n := range open {
		if n != 0 {
			t.Errorf("%s begins and does not end", k)
		}
	}
	for lane, s := range lanes {
		slices.SortFunc(s, func(a, b slice) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
		for i := 1; i < len(s); i++ {
			if s[i].start < s[i-1].end-0.0011 { // a nanosecond, of doubles
				t.Errorf("two runs overlap on lane %v: %v, %v", lane, s[i-1], s[i])
			}
		}
	}
}

const ms = int64(1e6)

func TestATasksLife(t *testing.T) {
	base := int64(1_700_000_000_000_000_000)
	ev := func(n uint64, st task.State, at int64) events.Event {
		return events.Event{Task: id(n), Opts: opts, State: st, At: base + at*ms, Attempt: 1, Worker: 5}
	}
	done := ev(1, task.Running, 9)
	done.Started, done.Ended = base+4*ms, base+8*ms
	failed := ev(2, task.Failed, 20)
	failed.Reason = errs.New(errs.CodeWorkerCrashed, "gone")
	d := write(t, Input{Processes: map[ids.ClientID]Process{5: {PID: 77, Name: "task host 1"}}, Nodes: []Node{{Name: "n1", PID: 10, Dropped: 3, Lost: 4, Events: []events.Event{
		ev(1, task.PendingArgs, 0), ev(1, task.PendingNode, 1), ev(1, task.Submitted, 3), done, ev(1, task.Finished, 9),
		ev(2, task.Submitted, 3), ev(2, task.Running, 5), failed,
		ev(3, task.Submitted, 8), ev(3, task.Running, 9), // still runs
		ev(4, task.PendingArgs, 10), // still waits
	}}}})
	schema(t, d)
	if d.Other["node"] != "n1" || d.Other["dropped"] != 3.0 || d.Other["lost"] != 4.0 || d.Other["base_unix_ns"] != float64(base) {
		t.Errorf("metadata %v", d.Other)
	}
	runs := map[string]map[string]any{}
	var processes []any
	waits := 0
	for _, r := range d.Trace {
		switch r["ph"] {
		case "X":
			runs[r["args"].(map[string]any)["task"].(string)] = r
		case "b":
			waits++
		}
		if r["name"] == "process_name" {
			processes = append(processes, r["args"].(map[string]any)["name"])
		}
	}
	if len(processes) != 2 || processes[0] != "node n1" || processes[1] != "task host 1" {
		t.Errorf("processes %v", processes)
	}
	if waits != 6 { // task 1: args, node, submitted; 2 and 3: submitted; 4: args
		t.Errorf("%d waits", waits)
	}
	for n, want := range map[uint64]struct {
		ts, dur float64
		state   string
	}{1: {4000, 4000, "FINISHED"}, 2: {5000, 15000, "FAILED"}, 3: {9000, 11000, "RUNNING"}} {
		r := runs[id(n).String()]
		if r == nil || r["ts"] != want.ts || r["dur"] != want.dur || r["pid"] != 77.0 || r["name"] != "math/add" || r["args"].(map[string]any)["state"] != want.state {
			t.Errorf("task %d is drawn as %v, want %+v", n, r, want)
		}
	}
	if r := runs[id(2).String()]["args"].(map[string]any); r["reason"] != failed.Reason.Error() {
		t.Errorf("the failure is drawn as %v", r)
	}
}

// What several nodes have recorded is one document: the waits of each node's jobs are in its own process, though the nodes have one number.
func TestSeveralNodesAreOneDocument(t *testing.T) {
	at := func(n uint64, s task.State, ms int64) events.Event {
		return events.Event{Task: id(n), Opts: opts, State: s, At: int64(1e18) + ms*1e6, Attempt: 1, Worker: 5}
	}
	d := write(t, Input{Nodes: []Node{
		{Name: "n1", PID: 10, Lost: 1, Events: []events.Event{at(1, task.PendingArgs, 5), at(1, task.Submitted, 6)}},
		{Name: "n2", PID: 10, Lost: 2, Events: []events.Event{at(2, task.PendingArgs, 0), at(2, task.Submitted, 3)}},
	}})
	schema(t, d)
	if d.Other["node"] != "n1, n2" || d.Other["events"] != 4.0 || d.Other["lost"] != 3.0 {
		t.Errorf("metadata %v", d.Other)
	}
	names, first := map[any]any{}, map[any]float64{}
	for _, r := range d.Trace {
		args, _ := r["args"].(map[string]any)
		switch {
		case r["name"] == "process_name":
			names[r["pid"]] = args["name"]
		case r["ph"] == "b" && r["name"] == "PENDING_ARGS_AVAIL":
			first[names[r["pid"]]] = r["ts"].(float64)
		}
	}
	if len(first) != 2 || first["node n1"]-first["node n2"] != 5000 {
		t.Errorf("the tasks of the nodes begin to wait at %v", first)
	}
}

func TestNothingHappened(t *testing.T) {
	schema(t, write(t, Input{Nodes: []Node{{Name: "n", PID: 1}}}))
}

// Any sequence of changes, whole or with its begin lost, makes a valid document.
func TestAnyEventsMakeAValidDocument(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		var evs []events.Event
		at := int64(1e18)
		for range rapid.IntRange(0, 80).Draw(rt, "events") {
			at += rapid.Int64Range(0, 5*ms).Draw(rt, "passes")
			e := events.Event{Task: id(rapid.Uint64Range(1, 6).Draw(rt, "task")), Opts: opts, At: at,
				State: rapid.SampledFrom(task.States()[1:]).Draw(rt, "state"), Attempt: rapid.Uint32Range(0, 3).Draw(rt, "attempt"),
				Worker: ids.ClientID(rapid.Uint64Range(0, 2).Draw(rt, "worker"))}
			if e.State == task.Running && rapid.Bool().Draw(rt, "reported") {
				e.Started = at - rapid.Int64Range(0, 9*ms).Draw(rt, "ago")
				e.Ended = e.Started + rapid.Int64Range(0, 9*ms).Draw(rt, "for")
			}
			evs = append(evs, e)
		}
		schema(rt, write(rt, Input{Nodes: []Node{{Name: "n", PID: 1, Events: evs}}, Processes: map[ids.ClientID]Process{1: {PID: 1}, 2: {PID: 1}}}))
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errs.ErrOutOfDisk }

func TestAFailedWriteIsReported(t *testing.T) {
	if err := Write(broken{}, Input{Nodes: []Node{{Name: "n"}}}); !errors.Is(err, errs.ErrOutOfDisk) {
		t.Errorf("got %v", err)
	}
}
