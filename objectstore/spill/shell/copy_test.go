package shell

import (
	"errors"
	"os"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
)

// copies asks for objects to be written anew from where they lie.
func copies(all []spill.Item, locs []spill.Location, which ...int) (out []spill.Copy) {
	for _, i := range which {
		out = append(out, spill.Copy{ID: all[i].ID, Attempt: all[i].Attempt, From: locs[i]})
	}
	return out
}

func copyLater(s *Spiller, objs []spill.Copy) <-chan written {
	out := make(chan written, 2)
	s.Copy(objs, func(locs []spill.Location, err error) { out <- written{locs, err} })
	return out
}

// Objects of several files and targets are copied into one, and the old files go with what is removed.
func TestObjectsAreWrittenAnewFromFileToFile(t *testing.T) {
	a, b := diskDir(t), diskDir(t)
	s := open(t, func(c *Config) { c.URLs = []string{a, b} })
	all := items(20, 300_000) // five files of four
	all = append(all, items(5, 700)...)
	locs := mustWrite(t, s, all)
	which := []int{0, 5, 10, 15, 19, 22}
	w := testkit.Receive(t, "copy", copyLater(s, copies(all, locs, which...)))
	if w.err != nil {
		t.Fatal(w.err)
	}
	s.Remove(locs)
	for i, n := range which {
		mustRead(t, s, w.locs[i], all[n].Data)
	}
	testkit.Eventually(t, "the old files are deleted", func() bool { return len(spillFiles(t, a))+len(spillFiles(t, b)) <= 2 })
	s.Recover(w.locs)
	mustRead(t, s, w.locs[1], all[5].Data)
	s.Remove(w.locs)
	testkit.Eventually(t, "the new ones too", func() bool { return len(spillFiles(t, a))+len(spillFiles(t, b)) == 0 })
}

// What is removed while it is copied is there until then.
func TestAFileStaysWhileItIsCopied(t *testing.T) {
	g := newGate(t)
	s := open(t, func(c *Config) { c.URLs = []string{g.url} })
	all := items(3, 1000)
	locs := mustWrite(t, s, all)
	g.hold(opPut)
	copying := copyLater(s, copies(all, locs, 1))
	g.reached(t, opPut)
	s.Remove(locs)
	g.open(opPut)
	w := testkit.Receive(t, "copy", copying)
	if w.err != nil {
		t.Fatal(w.err)
	}
	mustRead(t, s, w.locs[0], all[1].Data)
	testkit.Eventually(t, "the old file is deleted", func() bool { return s.Stats().FilesDeleted == 1 })
}

// What cannot be read is not copied; that is not the fault of the target that it goes to.
func TestWhatCannotBeReadIsNotCopied(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"gone":      os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 5000) },
		"changed": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("other"), 200_000)
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := diskDir(t)
			s := open(t, func(c *Config) { c.Dir = dir })
			all := items(2, 400_000)
			locs := mustWrite(t, s, all)
			if err := damage(spillFiles(t, dir)[0]); err != nil {
				t.Fatal(err)
			}
			w := testkit.Receive(t, "copy", copyLater(s, copies(all, locs, 0, 1)))
			if !errors.Is(w.err, spill.ErrCorrupt) && !errors.Is(w.err, spill.ErrMissing) {
				t.Fatalf("copied: %v, %v", w.locs, w.err)
			}
			if st := s.Stats(); st.Targets[0].Health != spill.Healthy || st.Refused != 0 {
				t.Errorf("the target is blamed: %+v", st)
			}
			mustRead(t, s, mustWrite(t, s, all)[1], all[1].Data)
			s.Remove(locs)
			testkit.Eventually(t, "only what was written last is there", func() bool { return len(spillFiles(t, dir)) == 1 })
		})
	}
}

func TestACopyFromNoTargetIsMissing(t *testing.T) {
	s := open(t, nil)
	all := items(1, 100)
	locs := mustWrite(t, s, all)
	locs[0].Target = 7
	if w := testkit.Receive(t, "copy", copyLater(s, copies(all, locs, 0))); !errors.Is(w.err, spill.ErrMissing) {
		t.Errorf("copied from a target that is not there: %v", w.err)
	}
	shut(t, s)
	if w := testkit.Receive(t, "copy", copyLater(s, nil)); !errors.Is(w.err, errs.ErrShutdown) {
		t.Errorf("copied by a spiller that is closed: %v", w.err)
	}
}
