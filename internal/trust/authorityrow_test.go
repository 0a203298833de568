package trust

import (
	"errors"
	"testing"
	"time"

	"mobula/internal/errs"
)

func TestARotationOfRoots(t *testing.T) {
	day := func(n int) time.Time { return made.Add(time.Duration(n) * 24 * time.Hour) }
	root := func(name string, until int) Root { return Root{Certificate: []byte(name), Until: day(until)} }
	row := AuthorityRow{Form: 1, Cluster: "c", Roots: []Root{root("a", 100)}}
	trusted := func(r AuthorityRow, n int) (out string) {
		for _, one := range r.Trusted(day(n)) {
			out += string(one.Certificate)
		}
		return out + " " + string(r.Signs().Certificate)
	}
	next, err := row.Rotated(root("b", 200), day(10), day(40))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Rotated(root("c", 300), day(39), day(80)); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a rotation during one: %v", err)
	}
	third, err := next.Rotated(root("c", 300), day(41), day(80))
	if err != nil {
		t.Fatal(err)
	}
	late, err := row.Rotated(root("b", 200), day(90), day(140))
	if err != nil {
		t.Fatal(err)
	}
	leaked, err := row.Rotated(root("b", 200), day(10), day(10))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row  AuthorityRow
		day  int
		want string
	}{
		{row, 0, "a a"}, {row, 101, "a a"}, // of one that has expired its certificate says so
		{next, 10, "ab b"}, {next, 39, "ab b"}, {next, 40, "b b"},
		{third, 79, "bc c"}, {third, 80, "c c"},
		{late, 99, "ab b"}, {late, 100, "b b"},
		{leaked, 10, "b b"},
	} {
		if got := trusted(c.row, c.day); got != c.want {
			t.Errorf("day %d: %s, want %s", c.day, got, c.want)
		}
	}
	if trusted(row, 0) != "a a" || row.Roots[0].Until != day(100) {
		t.Error("a rotation has changed the row that it began with")
	}
}

func TestARowThatCannotBeServed(t *testing.T) {
	good := AuthorityRow{Form: 1, Cluster: "c", Roots: []Root{{}}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	later := good
	later.Form = AuthorityForm + 1
	for _, c := range []struct {
		row  AuthorityRow
		want error
	}{{AuthorityRow{}, errs.ErrInvalid}, {AuthorityRow{Form: 1, Cluster: "c"}, errs.ErrInvalid}, {AuthorityRow{Form: 1, Cluster: "a/b", Roots: []Root{{}}}, errs.ErrInvalid}, {later, errs.ErrVersion}} {
		if err := c.row.Check(); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.row, err)
		}
	}
}
