package actors

import (
	"errors"
	"testing"

	"mobula/internal/errs"
)

func TestRedeliveredOnceToANewCore(t *testing.T) {
	log := &events{}
	s := system(t, Config{OnEvent: log.add})
	rec := newRecording()
	r := spawn(t, s, scriptSpec("a", rec))
	post(t, r, ev{id: 1}, ev{id: 2, crash: 1}, ev{id: 3})
	barrier(t, r)
	want(t, "stepped", rec.ids(), []int{1, 2, 3, -1})
	want(t, "first core", rec.cores[0], []int{1})
	want(t, "second core", rec.cores[1], []int{2, 3, -1})
	if st := rec.starts[1]; st.Restart != 1 || !errors.Is(st.Reason, errs.ErrPanic) {
		t.Errorf("second start: %+v", st)
	}
	if e := log.of(EventRestarted); len(e) != 1 || e[0].Path != "root/a" {
		t.Errorf("restart events: %+v", e)
	}
	if n := s.Restarts()["script"]; n != 1 {
		t.Errorf("restarts by kind: %d", n)
	}
	if tree := s.Tree(); len(tree) != 1 || tree[0].Restarts != 1 || tree[0].Err == nil {
		t.Errorf("tree: %+v", tree)
	}
}
