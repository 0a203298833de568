package state

import (
	"slices"
	"strings"

	"mobula/internal/heap"
)

// Pager picks a page out of rows that come in any order, and counts them. It keeps at most limit+1 of them. R is
// the source of a row: rows are made only for the page.
type Pager[R any] struct {
	compare func(a, b R) int
	behind  func(a, b *R) bool
	after   *R // the page begins behind it; nil: at the first
	limit   int
	kept    []R // a heap with the last row first
	total   int
}

// NewPager picks the limit smallest rows after after, which may be nil.
func NewPager[R any](limit int, after *R, compare func(a, b R) int) *Pager[R] {
	return &Pager[R]{compare: compare, behind: func(a, b *R) bool { return compare(*a, *b) > 0 }, after: after, limit: limit}
}

// Add offers a row that passed the filters.
func (p *Pager[R]) Add(r R) {
	p.total++
	switch {
	case p.after != nil && p.compare(r, *p.after) <= 0:
	case len(p.kept) <= p.limit:
		heap.Push(&p.kept, r, p.behind)
	case p.compare(r, p.kept[0]) < 0:
		heap.Replace(p.kept, r, p.behind)
	}
}

// Bound is the row before which a row must be to get on the page, or nil while any may.
func (p *Pager[R]) Bound() *R {
	if len(p.kept) <= p.limit {
		return nil
	}
	b := p.kept[0]
	return &b
}

// Skip counts rows that passed the filters and cannot get on the page.
func (p *Pager[R]) Skip(n int) { p.total += n }

// Rows gives the page in order, how many rows were offered in all, and whether there
// are more behind the page.
func (p *Pager[R]) Rows() (rows []R, total int, more bool) {
	rows = slices.Clone(p.kept)
	slices.SortFunc(rows, p.compare)
	if more = len(rows) > p.limit; more {
		rows = rows[:p.limit]
	}
	return rows, p.total, more
}

// Select makes a page of a complete list of rows. key is a row's order and its cursor.
func Select[T any](q Query, rows []T, key func(*T) string) List[T] {
	return choose(q, rows, key, strings.Compare)
}

// SelectLast is Select with the row of the largest key first.
func SelectLast[T any](q Query, rows []T, key func(*T) string) List[T] {
	return choose(q, rows, key, func(a, b string) int { return strings.Compare(b, a) })
}

func choose[T any](q Query, rows []T, key func(*T) string, order func(a, b string) int) List[T] {
	var kept []T
	for i := range rows {
		if Pass(&rows[i], q.Filters) {
			kept = append(kept, rows[i])
		}
	}
	slices.SortFunc(kept, func(a, b T) int { return order(key(&a), key(&b)) })
	p := Page[T]{Total: len(kept), Rows: []T{}}
	for i := range kept {
		if q.Cursor != "" && order(key(&kept[i]), q.Cursor) <= 0 {
			continue
		}
		if len(p.Rows) == q.Limit {
			p.Truncated = true
			break
		}
		p.Rows = append(p.Rows, kept[i])
	}
	return NewList(p, func(i int) string { return key(&p.Rows[i]) })
}

// List is a page as the node makes it that has the rows.
type List[T any] struct {
	Page[T]
	place func(row int) string
}

// NewList makes a List of a page without Next; place gives the cursor behind a row of it.
func NewList[T any](p Page[T], place func(row int) string) List[T] {
	if p.Truncated {
		p.Next = place(len(p.Rows) - 1)
	}
	return List[T]{p, place}
}

// Placed is the page, with the cursor behind each row, for the node that joins it with those of others.
func (l List[T]) Placed() Placed[T] {
	out := Placed[T]{Page: l.Page, Places: make([]string, len(l.Rows))}
	for i := range l.Rows {
		out.Places[i] = l.place(i)
	}
	return out
}

// Placed is a page that can be joined with those of other nodes.
type Placed[T any] struct {
	Page   Page[T]  `json:"page"`
	Places []string `json:"places"`
}
