package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// dated is a row that has a time, by the clock of its node.
type dated struct {
	ID   string `json:"id"`
	At   int64  `json:"at"`
	Node string `json:"node"`
	real int64  // by the clock of whoever joins the lists
}

var datedRows = Kind[dated]{
	Order: func(a, b *dated) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.ID, b.ID)) },
	Times: func(r *dated) []*int64 { return []*int64{&r.At} },
}

// listed is the page that a node gives of its rows: the newest first.
func listed(rows []dated, q Query) List[dated] {
	return SelectLast(q, rows, func(r *dated) string { return fmt.Sprintf("%020d/%s", r.At, r.ID) })
}

// Pages of several nodes, put together, have each row of each node once, newest first by the clock of the node that joins them: whatever the clocks say,
// and though each page measures them anew.
func TestPagesOfSeveralNodesPartitionTheirRows(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		nodes := rapid.IntRange(1, 4).Draw(rt, "nodes")
		rows, ahead, total := make([][]dated, nodes), make([]int64, nodes), 0
		for n := range rows {
			ahead[n] = rapid.Int64Range(-5000, 5000).Draw(rt, "ahead")
			for i := range rapid.IntRange(0, 12).Draw(rt, "rows") {
				at := 100_000 + rapid.Int64Range(0, 500).Draw(rt, "at")*10
				rows[n] = append(rows[n], dated{ID: fmt.Sprintf("%d.%d", n, i), At: at + ahead[n], Node: fmt.Sprint(n), real: at})
				total++
			}
		}
		var got []dated
		q := Query{Limit: rapid.IntRange(1, 7).Draw(rt, "limit")}
		for {
			var parts []Part[dated]
			for n := range rows {
				ask, err := q.Ask(ids.Home(n))
				if err != nil {
					rt.Fatal(err)
				}
				wrong := rapid.Int64Range(-2, 2).Draw(rt, "wrong")
				parts = append(parts, Part[dated]{Node: ids.Home(n), Ahead: ahead[n] + wrong, Placed: listed(rows[n], ask).Placed()})
			}
			p, err := datedRows.Join(q, parts)
			if err != nil || p.Total != total || len(p.Rows) > q.Limit || p.Truncated != (p.Next != "") || p.Truncated && len(p.Rows) != q.Limit {
				rt.Fatalf("a page of %d rows: %+v, %v", total, p, err)
			}
			if got = append(got, p.Rows...); !p.Truncated {
				break
			}
			q.Cursor = p.Next
		}
		seen := make(map[string]bool)
		for i, r := range got {
			if seen[r.ID] {
				rt.Fatalf("row %s comes twice", r.ID)
			}
			seen[r.ID] = true
			if off := r.At - r.real; off > 2 || off < -2 || i > 0 && r.real > got[i-1].real {
				rt.Fatalf("row %d is %+v, after %+v", i, r, got[max(i-1, 0)])
			}
		}
		if len(got) != total {
			rt.Fatalf("%d rows of %d", len(got), total)
		}
	})
}

func TestACursorOfOneNodeIsNoneOfSeveral(t *testing.T) {
	for _, cursor := range []string{"17/00000001", "x", "9g"} {
		if _, err := (Query{Cursor: cursor}).Ask(1); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v", cursor, err)
		}
		if _, err := datedRows.Join(Query{Cursor: cursor, Limit: 1}, nil); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v", cursor, err)
		}
	}
	if next := formatCursors(map[string]string{"1": "b", "0": "a"}); !slices.Contains([]string{next}, formatCursors(map[string]string{"0": "a", "1": "b"})) {
		t.Error("a cursor is not always the same")
	}
}

func TestWhatIsNoTimeIsNotShifted(t *testing.T) {
	r := Task{Submitted: 0, Since: 500}
	if TaskRows.Shift(&r, -100); r.Submitted != 0 || r.Since != 400 {
		t.Errorf("shifted to %+v", r)
	}
}
