package ids

import (
	"bytes"
	"encoding/hex"
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

// An id of 16 bytes from release 0.4 is the same task, derives the same children, and is shown to clients of that
// release as before.
func TestShortIDsAreThoseOfTheFirstHome(t *testing.T) {
	// Of release 0.4: RootTask(7, 42), and Derive of it and 3.
	root, _ := hex.DecodeString("000000072d6d6e9ffad9323801d3947d")
	child, _ := hex.DecodeString("000000072b4fe3ec4d811c635766675c")
	r, ok := TaskOf(root)
	if !ok || r != RootTask(7, 42) || r.Job() != 7 || r.Job().Home() != 0 {
		t.Fatalf("%x reads as %v, %v", root, r, ok)
	}
	c := Derive(r, 3)
	if short, ok := c.Short(); !ok || !bytes.Equal(short[:], child) {
		t.Errorf("its child is %v; release 0.4 made %x", c, child)
	}
	if o, ok := ObjectOf(append(root, 0x80, 0, 0, 9)); !ok || o != r.Put(9) {
		t.Errorf("an object reads as %v, %v", o, ok)
	}
	other := RootTask(JobID(Home(3).ID(7)), 42)
	if _, ok := other.Short(); ok || other.Job().Home() != 3 || other.Job().String() != "3-7" {
		t.Errorf("%v is of job %v", other, other.Job())
	}
	if o, ok := ObjectOf(other.Put(1).Append(nil)); !ok || o != other.Put(1) {
		t.Errorf("it reads back as %v, %v", o, ok)
	}
	for _, n := range []int{0, 3, 4, 15, 17, 19, 21, 24} {
		if _, ok := TaskOf(make([]byte, n)); ok {
			t.Errorf("%d bytes are a task", n)
		}
	}
}

func TestNumbersAreReadAsTheyArePrinted(t *testing.T) {
	for _, j := range []JobID{1, 7, JobID(MaxNumber), JobID(Home(1).ID(1)), JobID(MaxHome.ID(MaxNumber))} {
		if got, err := ParseNumber[JobID](j.String()); err != nil || got != j {
			t.Errorf("%v reads as %v, %v", j, got, err)
		}
	}
	if MaxHome.ID(MaxNumber)>>63 != 0 {
		t.Error("the upper bit is not free")
	}
	for _, bad := range []string{"", "-", "1-", "-1", "x", "1-2-3", "68719476736", "134217728-1", "+1"} {
		if got, err := ParseNumber[JobID](bad); !errors.Is(err, ErrBadID) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// Behind the last number of a home come another home's, which are not its to give out.
func TestTheLastNumberOfAHomeHasNoNext(t *testing.T) {
	for _, h := range []Home{0, 3, MaxHome} {
		before := LeaseID(h.ID(MaxNumber - 1))
		last, ok := Next(before)
		if !ok || last != before+1 || last.Home() != h {
			t.Errorf("home %v: behind %v comes %v, %v", h, before, last, ok)
		}
		if none, ok := Next(last); ok || none != 0 {
			t.Errorf("home %v: behind %v comes %v", h, last, none)
		}
	}
}
