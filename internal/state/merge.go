package state

import (
	"cmp"
	"encoding/base64"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Kind is how rows of several nodes make one list.
type Kind[T any] struct {
	Order func(a, b *T) int     // in which a node lists them
	Times func(row *T) []*int64 // by the clock of the row's node
}

// The kinds of row that each node lists for itself.
var (
	TaskRows = Kind[Task]{
		Order: func(a, b *Task) int { return cmp.Or(cmp.Compare(b.Submitted, a.Submitted), cmp.Compare(a.ID, b.ID)) },
		Times: func(r *Task) []*int64 { return []*int64{&r.Submitted, &r.Since} },
	}
	ActorRows = Kind[Actor]{
		Order: func(a, b *Actor) int { return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.ID, b.ID)) },
		Times: func(r *Actor) []*int64 { return []*int64{&r.Created, &r.Due} },
	}
	GraphRows = Kind[Graph]{
		Order: func(a, b *Graph) int { return cmp.Or(cmp.Compare(b.Started, a.Started), cmp.Compare(b.ID, a.ID)) },
		Times: func(r *Graph) []*int64 { return []*int64{&r.Started} },
	}
	ObjectRows = Kind[Object]{Order: func(a, b *Object) int { return cmp.Compare(a.ID, b.ID) }}
	SizedRows  = Kind[Object]{Order: func(a, b *Object) int { return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.ID, b.ID)) }}
	WorkerRows = Kind[Worker]{Order: func(a, b *Worker) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID)) }}
	JobRows    = Kind[Job]{Order: func(a, b *Job) int { return cmp.Or(cmp.Compare(len(b.ID), len(a.ID)), cmp.Compare(b.ID, a.ID)) }}

	ComponentRows = Kind[Component]{Order: func(a, b *Component) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Path, b.Path)) }}
)

// Part is the page of one node.
type Part[T any] struct {
	Placed[T]
	Node  ids.Home
	Ahead int64 // of its clock, to that of the node that joins the parts
}

// Ask is the query that a node is sent for its part of the page that q asks for.
func (q Query) Ask(node ids.Home) (Query, error) {
	at, err := parseCursors(q.Cursor)
	q.Cursor, q.Node = at[node.String()], ""
	return q, err
}

// Join makes one page of the nodes' parts. Each part is in its node's order, and stays so. The cursor of the page says for each node behind
// which of its rows the next page begins: so no row is left out or comes twice, whatever the clocks do between two pages.
func (k Kind[T]) Join(q Query, parts []Part[T]) (page Page[T], err error) {
	at, err := parseCursors(q.Cursor)
	if err != nil {
		return page, err
	}
	left := make([][]T, len(parts))
	for i := range parts {
		p := &parts[i]
		left[i] = p.Page.Rows
		page.Total += p.Page.Total
		page.Truncated = page.Truncated || p.Page.Truncated
		for j := range left[i] {
			k.Shift(&left[i][j], -p.Ahead)
		}
	}
	page.Rows = []T{}
	for len(page.Rows) < q.Limit {
		first := -1
		for i := range left {
			if len(left[i]) > 0 && (first < 0 || k.Order(&left[i][0], &left[first][0]) < 0) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		page.Rows = append(page.Rows, left[first][0])
		left[first] = left[first][1:]
	}
	for i := range parts {
		if taken := len(parts[i].Page.Rows) - len(left[i]); taken > 0 {
			at[parts[i].Node.String()] = parts[i].Places[taken-1]
		}
		page.Truncated = page.Truncated || len(left[i]) > 0
	}
	if page.Truncated {
		page.Next = formatCursors(at)
	}
	return page, nil
}

// Shift adds a difference of clocks to the times of a row; 0 is no time, and stays.
func (k Kind[T]) Shift(row *T, by int64) {
	if k.Times == nil {
		return
	}
	for _, t := range k.Times(row) {
		if *t != 0 {
			*t += by
		}
	}
}

// The cursor of a list of several nodes is a map: the cursor of each node's own list, by its home.

func formatCursors(at map[string]string) string {
	b, err := cursorMode.Marshal(at)
	if err != nil {
		panic(err) // texts can be encoded
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursors(s string) (map[string]string, error) {
	at := make(map[string]string)
	if s == "" {
		return at, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = cbor.Unmarshal(b, &at)
	}
	if err != nil || at == nil {
		return nil, errs.New(errs.CodeInvalid, "cursor %q: want the \"next\" of the page before", s)
	}
	return at, nil
}

// cursorMode encodes equal maps equally.
var cursorMode = func() cbor.EncMode {
	m, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()
