package world

import (
	"fmt"
	"hash/crc32"
	"reflect"
	"runtime/debug"
	"strings"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/remote"
	"mobula/wire"
)

// kept is how many of the last events a failure shows.
const kept = 400

// trace is what has happened: a hash over all events and effects, and the last events.
type trace struct {
	hash  uint64
	of    digester
	last  [kept]entry
	n     int
	all   bool
	lines []string
}

// entry is one event, and who took it.
type entry struct {
	at  int64
	box string
	ev  any
}

func (t *trace) init(all bool) {
	t.of, t.hash, t.all = digester{make(map[reflect.Type]*digestOf)}, hashBasis, all
}

func (t *trace) note(w *World, b *box, ev any) {
	t.mix(uint64(w.now))
	t.mix(uint64(b.order))
	t.mix(t.of.of(ev))
	t.add(w, b.name, ev)
}

func (t *trace) add(w *World, box string, ev any) {
	t.last[t.n%kept] = entry{w.now - begin, box, ev}
	t.n++
	if t.all {
		t.lines = append(t.lines, t.last[(t.n-1)%kept].String())
	}
}

// effect notes what a core asks for.
func (t *trace) effect(f any) { t.mix(t.of.of(f)) }

func (t *trace) mix(x uint64) { t.hash = hashMix(t.hash, x) }

// checksum is a number for some bytes.
func checksum(b []byte) uint64 { return uint64(crc32.ChecksumIEEE(b)) }

// tail is the last events, a line each.
func (t *trace) tail() string {
	var b strings.Builder
	for i := max(0, t.n-kept); i < t.n; i++ {
		b.WriteString(t.last[i%kept].String())
		b.WriteByte('\n')
	}
	return b.String()
}

// lineLength bounds a line of a failure's report.
const lineLength = 4000

func (e entry) String() string {
	s := fmt.Sprintf("%11.3fms %-14s %s", float64(e.at)/1e6, e.box, show(e.ev))
	if len(s) > lineLength {
		s = s[:lineLength] + "..."
	}
	return s
}

// show writes an event with what it points to.
func show(ev any) string {
	switch ev := ev.(type) {
	case []wire.Msg:
		out := make([]string, len(ev))
		for i, m := range ev {
			out[i] = show(m)
		}
		return strings.Join(out, "; ")
	case owner.FromClient:
		return fmt.Sprintf("client %v: %s", ev.Client, show(ev.Msgs))
	case objectstore.FromClient:
		return fmt.Sprintf("client %v: %s", ev.Client, show(ev.Msg))
	case owner.FromSched:
		return show(ev.Msg)
	case owner.FromStore:
		return show(ev.Msg)
	case owner.FromDirectory:
		return show(ev.Msg)
	case *peerEvent:
		return show(ev.ev)
	case remote.Send:
		return "Send " + showPayload(ev.Payload)
	case remote.Received:
		return fmt.Sprintf("Received connection %d number %d: %s", ev.Conn, ev.Number, showPayload(ev.Payload))
	case delivered:
		return "delivered " + showPayload(ev.payload)
	case *internode.Report:
		return fmt.Sprintf("Report %d", ev.Node.Version)
	case cluster.NodeReport:
		return fmt.Sprintf("cluster.NodeReport %v %d", ev.Node.ID, ev.Node.Version)
	case ofCore:
		return show(ev.ev)
	case *internode.ToClients:
		return fmt.Sprintf("ToClients job %v: %s", ev.Job, showItems(ev.Items))
	case *internode.FromClients:
		return fmt.Sprintf("FromClients job %v: %s", ev.Job, showItems(ev.Items))
	case *wire.Submit:
		var b strings.Builder
		fmt.Fprintf(&b, "Submit %v %s", brief(ev.Spec.ID), ev.Spec.Opts.Func)
		for _, a := range ev.Spec.Args {
			b.WriteString(" " + briefObject(a.Ref))
		}
		return b.String()
	case *wire.Exec:
		var b strings.Builder
		fmt.Fprintf(&b, "Exec lease %v", ev.Lease)
		for _, t := range ev.Tasks {
			fmt.Fprintf(&b, " %v#%d %s", brief(t.Spec.ID), t.Attempt, t.Spec.Opts.Func)
		}
		return b.String()
	case *wire.Done:
		return fmt.Sprintf("Done %v#%d lease %v %v", brief(ev.Task), ev.Attempt, ev.Lease, ev.Err)
	case *wire.Resolved:
		return fmt.Sprintf("Resolved %s kind %d %+v %v", briefObject(ev.ID), ev.Result.Kind, ev.Extent, ev.Result.Err)
	}
	return fmt.Sprintf("%T %+v", ev, ev)
}

// showPayload writes what a payload between nodes has.
func showPayload(b []byte) string {
	var out []string
	var d internode.Decoder
	if err := d.Decode(b, func(m internode.Msg) error {
		out = append(out, show(m))
		return nil
	}); err != nil {
		out = append(out, err.Error())
	}
	return strings.Join(out, "; ")
}

func showItems(items []internode.ClientMsgs) string {
	var out []string
	for _, it := range items {
		out = append(out, fmt.Sprintf("client %v: %s", it.Client, show(readable(it.Msgs))))
	}
	return strings.Join(out, "; ")
}

func brief(id ids.TaskID) string { return id.String()[16:24] }

func briefObject(id ids.ObjectID) string { return brief(id.Task) + id.String()[40:] }

// Failure is a run in which a promise was broken.
type Failure struct {
	Config
	Why  string
	Tail string // the last events
	All  []string
}

// Error says how to see it again.
func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d: %s\nrun it again: go test ./internal/world -run TestOneSeed %s -v\nthe last events:\n%s", f.Seed, f.Why, f.flags(), f.Tail)
}

// flags are those with which TestOneSeed runs it.
func (f *Failure) flags() string {
	d := Config{}.withDefaults()
	flags := []string{fmt.Sprintf("-world.seed %d", f.Seed)}
	for _, x := range []struct {
		name      string
		is, usual int
	}{{"nodes", f.Nodes, d.Nodes}, {"jobs", f.Jobs, d.Jobs}, {"faults", f.Faults, d.Faults}} {
		if x.is != x.usual {
			flags = append(flags, fmt.Sprintf("-world.%s %d", x.name, x.is))
		}
	}
	if f.Only != "" {
		flags = append(flags, fmt.Sprintf("-world.only %q", f.Only))
	}
	return strings.Join(flags, " ")
}

// failed is the failure that a panic stands for: a promise that is broken, or a core that panicked.
func (w *World) failed(p any) *Failure {
	f := &Failure{Config: w.cfg, Tail: w.log.tail(), All: w.log.lines}
	if b, ok := p.(broken); ok {
		f.Why = string(b)
	} else {
		f.Why = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
	}
	return f
}
