package inspect

import (
	"context"
	"fmt"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/owner/object"
	"mobula/raylet/owner/task"
)

// Objects lists objects by id.
func (n *Inspector) Objects(ctx context.Context, q state.Query) (page state.List[state.Object], err error) {
	var after *owner.ObjectView
	if q.Cursor != "" {
		id, err := ids.ParseObject(q.Cursor)
		if err != nil {
			return page, errs.New(errs.CodeInvalid, "cursor %q: want the \"next\" of the page before", q.Cursor)
		}
		after = &owner.ObjectView{ID: id}
	}
	p, err := n.objects(ctx, q, after, byID)
	if err != nil {
		return page, err
	}
	return state.NewList(p, func(i int) string { return p.Rows[i].ID }), nil
}

// MemoryList is a state.Memory as the node makes it that has the objects.
type MemoryList struct {
	state.Memory
	Objects state.List[state.Object]
}

// Memory lists objects by size, the largest first, and says how full the store is.
func (n *Inspector) Memory(ctx context.Context, q state.Query) (m MemoryList, err error) {
	var after *owner.ObjectView
	if q.Cursor != "" {
		after = new(owner.ObjectView)
		var id string
		if _, err = fmt.Sscanf(q.Cursor, "%d/%s", &after.Size, &id); err == nil {
			after.ID, err = ids.ParseObject(id)
		}
		if err != nil || after.ID.IsZero() {
			return m, errs.New(errs.CodeInvalid, "cursor %q: want the \"next\" of the page before", q.Cursor)
		}
	}
	p, err := n.objects(ctx, q, after, bySize)
	if err != nil {
		return m, err
	}
	m.Objects = state.NewList(p, func(i int) string { return fmt.Sprintf("%d/%s", p.Rows[i].Size, p.Rows[i].ID) })
	m.Memory.Objects = m.Objects.Page
	snap := n.Snapshot(ctx)
	m.Store, m.Inline = snap.Store, snap.InlineBytes
	return m, nil
}

// objects goes through the objects of every owner; what the store knows is asked for the rows of the
// page only.
func (n *Inspector) objects(ctx context.Context, q state.Query, after *owner.ObjectView, order func(a, b owner.ObjectView) int) (page state.Page[state.Object], err error) {
	if q, err = state.Check[state.Object](q); err != nil {
		return page, err
	}
	for _, f := range q.Filters {
		if f.Field == "where" || f.Field == "pins" {
			return page, errs.New(errs.CodeInvalid, "filter %q: objects cannot be filtered by what the store knows (where, pins); filter by state", f)
		}
	}
	pager := state.NewPager(q.Limit, after, order)
	for _, o := range n.node.Owners() {
		if !jobPasses(q.Filters, o.Job) {
			continue
		}
		err := scanOwner(ctx, n, o, func(c *owner.Core) *owner.Scan { return c.ScanObjects(scanPart) },
			func(s *owner.Scan, p *rowsOf[owner.ObjectView]) bool {
				return s.NextObjects(func(v owner.ObjectView) { p.rows = append(p.rows, v) })
			}, func(p *rowsOf[owner.ObjectView]) {
				for i := range p.rows {
					if len(q.Filters) > 0 {
						if row := n.objectRow(&p.rows[i]); !state.Pass(&row, q.Filters) {
							continue
						}
					}
					pager.Add(p.rows[i])
				}
			})
		if err != nil && !n.ended(o) {
			return page, err
		}
	}
	views, total, more := pager.Rows()
	page = state.Page[state.Object]{Total: total, Truncated: more, Rows: make([]state.Object, len(views))}
	for i := range views {
		page.Rows[i] = n.objectRow(&views[i])
	}
	return page, n.whereabouts(ctx, views, page.Rows)
}

func (n *Inspector) objectRow(v *owner.ObjectView) state.Object {
	r := state.Object{
		ID: v.ID.String(), Type: owner.KindOf(v), State: v.State.String(), Where: "nowhere", Size: v.Size, Job: v.ID.Job().String(),
		Holders: v.Holders, Tasks: v.Tasks, Within: v.Within, Node: n.node.Listed(),
	}
	if v.State == object.Inline {
		r.Where = "message"
	}
	if o := v.Task.Opts; o != nil {
		r.Func = o.Func
	}
	if s := v.Task.Spec; s != nil {
		r.Callsite = s.Callsite
	}
	if len(v.On) > 0 {
		r.Where = "on node " + n.node.NameOf(v.On[0])
	}
	if v.Err != nil {
		r.Error = v.Err.Error()
	}
	return r
}

// storeElsewhere is what a store says of an object of which other nodes have the bytes. The owner knows which.
const storeElsewhere = "elsewhere"

const storePart = 256 // objects that the store is asked of in one go

// whereabouts adds what the store knows.
func (n *Inspector) whereabouts(ctx context.Context, views []owner.ObjectView, rows []state.Object) error {
	var stored []int
	for i := range views {
		if views[i].State == object.Stored || views[i].State == object.Pending {
			stored = append(stored, i)
		}
	}
	for len(stored) > 0 {
		some := stored[:min(storePart, len(stored))]
		stored = stored[len(some):]
		infos, err := inStore(ctx, n, func(c *objectstore.Core) []objectstore.Info {
			got := make([]objectstore.Info, len(some))
			for k, i := range some {
				got[k] = c.Info(views[i].ID)
			}
			return got
		})
		if err != nil {
			return err
		}
		for k, i := range some {
			if in := infos[k]; in.State != "" {
				if rows[i].Pins = int(in.Pins); in.State != storeElsewhere || len(views[i].On) == 0 {
					rows[i].Where = in.State
				}
				if rows[i].Size == 0 {
					rows[i].Size = in.Size
				}
			}
		}
	}
	return nil
}

func parseTaskState(name string) (task.State, error) {
	st, ok := task.Parse(strings.ToUpper(name))
	if !ok {
		var names []string
		for _, s := range task.States()[1:] {
			names = append(names, s.String())
		}
		return 0, errs.New(errs.CodeInvalid, "state %q: want one of %s", name, strings.Join(names, ", "))
	}
	return st, nil
}
