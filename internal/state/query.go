package state

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// The bounds of a page.
const (
	DefaultLimit = 100
	MaxLimit     = 10_000
)

// Query asks for a page of rows.
type Query struct {
	Filters []Filter `json:"filters,omitempty"` // a row must pass all
	Limit   int      `json:"limit,omitempty"`   // 0: DefaultLimit
	Cursor  string   `json:"cursor,omitempty"`  // Page.Next of the page before
	Node    string   `json:"node,omitempty"`    // the name or home of the one node to ask; empty: all of the cluster
}

// Filter compares a field of a row with a text.
type Filter struct {
	Field string `json:"field"` // a row's json name
	Not   bool   `json:"not,omitempty"`
	Value string `json:"value"`
}

// String is the filter as it is written.
func (f Filter) String() string {
	if f.Not {
		return f.Field + "!=" + f.Value
	}
	return f.Field + "=" + f.Value
}

// ParseFilter reads "state=RUNNING" or "state!=FINISHED".
func ParseFilter(s string) (Filter, error) {
	field, value, ok := strings.Cut(s, "=")
	f := Filter{Field: strings.TrimSpace(field), Value: strings.TrimSpace(value)}
	f.Field, f.Not = strings.CutSuffix(f.Field, "!")
	f.Field = strings.TrimSpace(f.Field)
	if !ok || f.Field == "" {
		return Filter{}, errs.New(errs.CodeInvalid, "filter %q: want FIELD=VALUE or FIELD!=VALUE", s)
	}
	return f, nil
}

// Page is some of the rows of a list.
type Page[T any] struct {
	Rows      []T    `json:"rows"`
	Total     int    `json:"total"`          // rows that match, on all pages
	Truncated bool   `json:"truncated"`      // there are rows after these
	Next      string `json:"next,omitempty"` // cursor for them

	Unreachable []Unreachable `json:"unreachable,omitempty"` // nodes whose rows are missing
}

// Missing are the nodes whose rows are missing.
func (p *Page[T]) Missing() []Unreachable { return p.Unreachable }

// Unreachable is a node that has not answered: what it has is missing in what it is named beside.
type Unreachable struct {
	Node string `json:"node"` // its name, or its home where no name is known
	Why  string `json:"why"`
}

// Check gives the query with its limit filled in, or what is wrong with it for rows of type T.
func Check[T any](q Query) (Query, error) {
	switch {
	case q.Limit == 0:
		q.Limit = DefaultLimit
	case q.Limit < 0 || q.Limit > MaxLimit:
		return q, errs.New(errs.CodeInvalid, "limit %d: want 1 to %d; take the next pages with the cursor", q.Limit, MaxLimit)
	}
	known := Fields[T]()
	for _, f := range q.Filters {
		if !slices.Contains(known, f.Field) {
			return q, errs.New(errs.CodeInvalid, "filter %q: rows have no field %q; they have %s", f, f.Field, strings.Join(known, ", "))
		}
		if want := refused[T](f); want != "" {
			return q, errs.New(errs.CodeInvalid, "filter %q: %q is not a value of %s: want %s", f, f.Value, f.Field, want)
		}
	}
	q.Filters = slices.Clone(q.Filters)
	for i, f := range q.Filters {
		if f.Field == "id" || f.Field == "parent" || f.Field == "actor" {
			q.Filters[i].Value = widened(f.Value)
		}
	}
	return q, nil
}

// shortID is the number of digits of a task's id before release 0.5.
const shortID = 32

// widened converts a task's or an object's id of a release before 0.5 to the form in rows; it returns other values
// unchanged.
func widened(value string) string {
	task, index, object := strings.Cut(value, ":")
	t, err := ids.ParseTask(task)
	switch {
	case len(task) != shortID || err != nil:
		return value
	case object:
		return t.String() + ":" + index
	}
	return t.String()
}

// refused says what a filter's value should be, if no row of type T can have the given one.
func refused[T any](f Filter) (want string) {
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if jsonName(t.Field(i)) != f.Field {
			continue
		}
		v := reflect.New(t.Field(i).Type)
		if v.Elem().Kind() == reflect.String || f.Value != "null" && json.Unmarshal([]byte(f.Value), v.Interface()) == nil {
			return ""
		}
		switch v.Elem().Kind() {
		case reflect.Bool:
			return "true or false"
		case reflect.Float32, reflect.Float64:
			return "a number"
		}
		return "a whole number"
	}
	return ""
}

// Fields lists the json names of T's fields that can be filtered by.
func Fields[T any]() []string {
	var out []string
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if name := jsonName(t.Field(i)); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func jsonName(f reflect.StructField) string {
	switch f.Type.Kind() {
	case reflect.Slice, reflect.Map, reflect.Struct, reflect.Pointer:
		return "" // no single value to compare
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Pass tells whether a row passes the filters.
func Pass[T any](row *T, filters []Filter) bool {
	v := reflect.ValueOf(row).Elem()
	for _, f := range filters {
		if (field(v, f.Field) == f.Value) == f.Not {
			return false
		}
	}
	return true
}

// field is a row's field as JSON would show it, without quotes.
func field(v reflect.Value, name string) string {
	for i := range v.NumField() {
		if jsonName(v.Type().Field(i)) != name {
			continue
		}
		if s, ok := v.Field(i).Interface().(string); ok {
			return s
		}
		b, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			return ""
		}
		return string(b)
	}
	return ""
}
