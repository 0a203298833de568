package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/testkit"
)

func TestFilters(t *testing.T) {
	row := Component{Path: "root/owner/7", Kind: "owner", Restarts: 2, Waiting: true, Error: ""}
	for _, c := range []struct {
		filters string
		want    bool
	}{
		{"kind=owner", true}, {"kind=store", false}, {"kind!=store", true}, {"kind!=owner", false},
		{"restarts=2", true}, {"restarts!=0", true}, {"restarts=20", false}, {"waiting=true", true},
		{"error=", true}, {"error!=", false}, {"kind=owner restarts=2", true}, {"kind=owner restarts=1", false},
	} {
		var fs []Filter
		for s := range strings.FieldsSeq(c.filters) {
			f, err := ParseFilter(s)
			if err != nil || f.String() != s {
				t.Fatalf("%q reads as %q, %v", s, f, err)
			}
			fs = append(fs, f)
		}
		if got := Pass(&row, fs); got != c.want {
			t.Errorf("%s: %v, want %v", c.filters, got, c.want)
		}
	}
	for _, s := range []string{"", "kind", "=x", "!=x"} {
		if f, err := ParseFilter(s); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q reads as %q, %v", s, f, err)
		}
	}
	if f, err := ParseFilter("name = a=b"); err != nil || f != (Filter{Field: "name", Value: "a=b"}) {
		t.Errorf("a value with an equals sign reads as %+v, %v", f, err)
	}
}

func TestCheckRefusesWhatCannotBeMeant(t *testing.T) {
	if q, err := Check[Task](Query{}); err != nil || q.Limit != DefaultLimit {
		t.Errorf("no limit gives %d, %v", q.Limit, err)
	}
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Limit: -1}, "-1"}, {Query{Limit: MaxLimit + 1}, "10001"},
		{Query{Filters: []Filter{{Field: "stat"}}}, "id, name, func, kind, state"},
	} {
		if _, err := Check[Task](c.q); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.q, err)
		}
	}
	for _, c := range []struct{ filter, want string }{{"queued=x", "whole number"}, {"queued!=", "whole number"}, {"done=1.5", "whole number"}, {"done=7", ""}, {"name=7", ""}} {
		f, err := ParseFilter(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Check[Graph](Query{Filters: []Filter{f}})
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.filter, err)
		}
	}
	short, full := "00000001a1b2c3d4e5f60718293a4b5c", "0000000000000001a1b2c3d4e5f60718293a4b5c"
	for filter, want := range map[string]string{"id=" + short: full, "id!=" + short + ":p3": full + ":p3", "parent=" + short: full, "actor=" + full: full,
		"name=" + short: short, "id=7": "7", "id=" + short[1:] + "x": short[1:] + "x"} {
		f, err := ParseFilter(filter)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Check[Task](Query{Filters: []Filter{f}})
		if err != nil || q.Filters[0].Value != want {
			t.Errorf("%s: %v, %v; want %s", filter, q.Filters, err, want)
		}
	}
	if slices.Contains(Fields[Worker](), "lease_ids") {
		t.Error("a list can be filtered by")
	}
}

type row struct {
	ID   string `json:"id"`
	Even bool   `json:"even"`
}

func rows(rt *rapid.T) []row {
	ns := rapid.SliceOfDistinct(rapid.IntRange(0, 500), rapid.ID[int]).Draw(rt, "rows")
	out := make([]row, len(ns))
	for i, n := range ns {
		out[i] = row{fmt.Sprintf("%03d", n), n%2 == 0}
	}
	return out
}

// Pages put together are the whole list, each row once, in order; every page knows the total.
func TestPagesPartitionTheList(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		all := rows(rt)
		q := Query{Limit: rapid.IntRange(1, 20).Draw(rt, "limit")}
		if rapid.Bool().Draw(rt, "filtered") {
			q.Filters = []Filter{{Field: "even", Value: "true"}}
		}
		want := []row{}
		for _, r := range all {
			if len(q.Filters) == 0 || r.Even {
				want = append(want, r)
			}
		}
		sel, order := Select[row], strings.Compare
		if rapid.Bool().Draw(rt, "last first") {
			sel, order = SelectLast[row], func(a, b string) int { return strings.Compare(b, a) }
		}
		slices.SortFunc(want, func(a, b row) int { return order(a.ID, b.ID) })
		got := []row{}
		for {
			p := sel(q, all, func(r *row) string { return r.ID })
			pg := NewPager(q.Limit, after(q.Cursor), func(a, b row) int { return order(a.ID, b.ID) })
			for i := range all {
				if !Pass(&all[i], q.Filters) {
					continue
				}
				if b := pg.Bound(); b != nil && order(all[i].ID, b.ID) > 0 {
					pg.Skip(1) // as well as to offer it
				} else {
					pg.Add(all[i])
				}
			}
			prows, total, more := pg.Rows()
			if total != p.Total || more != p.Truncated || !slices.Equal(prows, p.Rows) {
				rt.Fatalf("the pager gives %v of %d, Select %v of %d", prows, total, p.Rows, p.Total)
			}
			if p.Total != len(want) || len(p.Rows) > q.Limit || p.Truncated != (p.Next != "") {
				rt.Fatalf("page %+v, want a total of %d", p, len(want))
			}
			got = append(got, p.Rows...)
			if !p.Truncated {
				break
			}
			q.Cursor = p.Next
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("pages give %v, want %v", got, want)
		}
	})
}

func after(cursor string) *row {
	if cursor == "" {
		return nil
	}
	return &row{ID: cursor}
}

// The names on the wire are those of JSON: a reply read back from either is the same.
func TestShapesTravel(t *testing.T) {
	for _, v := range []any{
		&Status{Node: "n", Resources: map[string]Resource{"CPU": {2, 0.5}}, Jobs: []Job{{ID: "1", Tasks: map[string]int{"RUNNING": 3}}}, Store: Store{SpillTargets: []Target{{URL: "file:///x"}}}},
		&Page[Task]{Rows: []Task{{ID: "a", State: "FAILED", Reason: "x"}}, Total: 7, Truncated: true, Next: "a"},
		&Memory{Objects: Page[Object]{Rows: []Object{{ID: "a:0", Size: 5}}}},
		&Explanation{ID: "a", Next: &Explanation{ID: "b", Details: []string{"x"}}},
		&Page[Worker]{Rows: []Worker{{LeaseIDs: []uint64{1, 2}}}}, &Page[Actor]{Rows: []Actor{}}, &Page[Component]{Rows: []Component{{Path: "root"}}},
		&Text{Body: []byte{1, 2}}, &ActorReply{Actor: make([]byte, 16), Type: "t", JobDir: "/d"}, &Query{Filters: []Filter{{"a", true, "b"}}, Limit: 3},
	} {
		b, err := cbor.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(v).Elem())
		if err := cbor.Unmarshal(b, back.Interface()); err != nil || !reflect.DeepEqual(back.Interface(), v) {
			t.Errorf("%T: CBOR gives %+v (%v), want %+v", v, back.Interface(), err, v)
		}
		var viaCBOR, viaJSON map[string]any
		j, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(j, &viaJSON); err != nil {
			t.Fatal(err)
		}
		if err := cbor.Unmarshal(b, &viaCBOR); err != nil {
			t.Fatal(err)
		}
		for k := range viaJSON {
			if _, ok := viaCBOR[k]; !ok {
				t.Errorf("%T: %q is in JSON and not in CBOR", v, k)
			}
		}
	}
}

func TestActorRequestIsTheLibrarys(t *testing.T) {
	b, err := cbor.Marshal(map[string]string{"namespace": "prod", "name": "hits"})
	if err != nil {
		t.Fatal(err)
	}
	var r ActorRequest
	if err := cbor.Unmarshal(b, &r); err != nil || r != (ActorRequest{"prod", "hits"}) {
		t.Errorf("reads as %+v, %v", r, err)
	}
}
