package sched

import (
	"slices"
	"testing"

	"mobula/internal/ids"
)

// A load has what is free and what waits, whatever was in the struct before, and takes no memory the second time.
func TestLoad(t *testing.T) {
	w := newWorld(t, res(CPU, 2000, "r", 1000)...)
	small, large := w.task(1, 1), w.task(1, 2, res("r", 1000)...)
	w.submit(small, 5)
	w.submit(large, 1)
	w.step(SetPaused{On: true})
	l := Load{Waiting: make([]Waiting, 7)}
	w.c.Load(&l)
	if !slices.Equal(l.Total, res(CPU, 2000, "r", 1000)) || !slices.Equal(l.Free, res(CPU, 0, "r", 1000)) || l.Last != 2 || !l.Paused {
		t.Errorf("the load is %+v", l)
	}
	if len(l.Waiting) != 2 || l.Waiting[0].N+l.Waiting[1].N != 4 || l.Waiting[0].Opts.Func != "f" {
		t.Errorf("what waits is %+v", l.Waiting)
	}
	if n := testing.AllocsPerRun(100, func() { w.c.Load(&l) }); n > 0 {
		t.Errorf("it takes %v allocations", n)
	}
}

// A core that was rebuilt has nothing free before it knows what its owners hold.
func TestLoadAfterARestart(t *testing.T) {
	c, _, err := New(Config{Resources: res(CPU, 2000), FirstLease: 9, Jobs: []ids.JobID{1}, Epoch: 3})
	if err != nil {
		t.Fatal(err)
	}
	var l Load
	if c.Load(&l); l.Free[0].Amount != 0 || l.Last != 9 {
		t.Errorf("before anybody has answered the load is %+v", l)
	}
	c.Step(1, Holdings{Job: 1, Epoch: 3})
	if c.Load(&l); l.Free[0].Amount != 2000 {
		t.Errorf("after the answer the load is %+v", l)
	}
}
