package dealing

import (
	"slices"
	"testing"

	"mobula/internal/ids"
)

func TestPairsAreKeptUntilOneIsGone(t *testing.T) {
	job := func(home ids.Home, n uint64) ids.JobID { return ids.JobID(home.ID(n)) }
	a, b := job(1, 1), job(1, 2)
	second, other, third := job(2, 1), job(2, 2), job(3, 1)
	d := New()
	for _, x := range []Pair{{b, second}, {a, third}, {a, other}, {a, second}, {a, second}} {
		d.Note(x)
	}
	if got := d.Of(a); !slices.Equal(got, []ids.JobID{second, other, third}) {
		t.Errorf("the first has to do with %v", got)
	}
	if got := d.WithHome(2); !slices.Equal(got, []Pair{{a, second}, {a, other}, {b, second}}) {
		t.Errorf("with node 2 there is %v", got)
	}
	d.Forget(Pair{a, second})
	d.Forget(Pair{b, second})
	d.Forget(Pair{b, second}) // it is gone
	if got := d.Take(a); !slices.Equal(got, []ids.JobID{other, third}) {
		t.Errorf("the first is taken with %v", got)
	}
	if len(d.with) > 0 {
		t.Errorf("left are %v", d.with)
	}
}
