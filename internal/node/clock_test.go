package node

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobula/internal/machine"
	"mobula/internal/steady"
)

// A wall clock that was set by an hour between two lives of a node moves no deadline of the jobs that are left. With none left, or in another run of
// the machine, the clock begins with the wall clock's time.
func TestTheClockGoesOnInTheNextLife(t *testing.T) {
	for name, c := range map[string]struct {
		step    time.Duration // what the wall clock was set back by, after the life before
		boot    string
		jobs    bool
		damaged bool
		goesOn  bool
	}{
		"set back":                       {time.Hour, machine.Boot(), true, false, true},
		"set ahead":                      {-time.Hour, machine.Boot(), true, false, true},
		"no job is left":                 {time.Hour, machine.Boot(), false, false, false},
		"another run of the machine":     {time.Hour, "another", true, false, false},
		"a file that says nothing of it": {time.Hour, machine.Boot(), true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.jobs {
				if err := os.MkdirAll(filepath.Join(dir, "owner", "7"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			before := steady.Of(steady.New().Offset() + int64(c.step))
			text := fmt.Sprintln(c.boot, before.Offset())
			if c.damaged {
				text = "x"
			}
			if err := os.WriteFile(filepath.Join(dir, clockName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			want := time.Duration(0)
			if c.goesOn {
				want = c.step
			}
			for life := range 2 {
				now, err := clockOf(dir, true)
				if err != nil {
					t.Fatal(err)
				}
				if off := time.Duration(now.Now()-time.Now().UnixNano()) - want; off.Abs() > time.Minute {
					t.Errorf("life %d is %v off", life, off)
				}
			}
			if _, err := clockOf(t.TempDir(), false); err != nil {
				t.Error(err)
			}
		})
	}
}

// A kept node's directory says by which clock it goes.
func TestAKeptNodeNotesItsClock(t *testing.T) {
	dir := t.TempDir()
	n, err := startIn(t, Config{Dir: filepath.Join(dir, "n"), Keep: true, NoGCS: true, StoreBytes: 16 << 20, StoreDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "n", clockName))
	if err != nil {
		t.Fatal(err)
	}
	var boot string
	var offset int64
	if _, err := fmt.Sscan(string(b), &boot, &offset); err != nil || boot != machine.Boot() || time.Duration(offset-n.clock.Offset()).Abs() > time.Minute {
		t.Errorf("the file says %q, %v; the clock is %d ahead", b, err, n.clock.Offset())
	}
}
