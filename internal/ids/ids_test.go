package ids

import (
	"errors"
	"testing"
)

func TestDeriveIsStableAndSpreads(t *testing.T) {
	root := RootTask(7, 42)
	if root != RootTask(7, 42) || root.Job() != 7 {
		t.Fatalf("root task is not a function of its job and nonce: %v", root)
	}
	seen := make(map[TaskID]struct{})
	layer := []TaskID{root}
	for range 3 {
		var next []TaskID
		for _, p := range layer {
			for n := range uint64(60) {
				c := Derive(p, n)
				if c.Job() != 7 {
					t.Fatalf("child %v left its job", c)
				}
				if _, dup := seen[c]; dup {
					t.Fatalf("two calls share the id %v", c)
				}
				seen[c] = struct{}{}
				next = append(next, c)
			}
		}
		layer = next
	}
}

func TestATaskInAnotherJob(t *testing.T) {
	task := Derive(RootTask(7, 42), 1)
	in := task.In(9)
	if in.Job() != 9 || in.In(7) != task {
		t.Errorf("%v is %v in job 9, and %v back in 7", task, in, in.In(7))
	}
}

func TestObjectTextRoundTrip(t *testing.T) {
	task := Derive(RootTask(1, 2), 3)
	for _, want := range []ObjectID{task.Return(0), task.Return(2999), task.Put(0), task.Put(77)} {
		got, err := ParseObject(want.String())
		if err != nil || got != want {
			t.Errorf("ParseObject(%q) = %v, %v", want.String(), got, err)
		}
	}
	for _, bad := range []string{"", "00", task.String(), task.String() + ":", task.String() + ":px", task.String() + ":4294967295", "zz" + task.String()[2:] + ":0"} {
		if _, err := ParseObject(bad); !errors.Is(err, ErrBadID) {
			t.Errorf("ParseObject(%q): got %v, want ErrBadID", bad, err)
		}
	}
}

func BenchmarkDerive(b *testing.B) {
	t := RootTask(1, 1)
	for n := range uint64(b.N) {
		t = Derive(t, n)
	}
	_ = t
}
