package disk

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobula/objectstore/spill/storage"
)

// A session is kept even if others do not see its lock, as over NFS: its owner entry keeps it.
func TestASessionWhoseLockIsNotSeenIsNotSwept(t *testing.T) {
	bufs := storage.NewBuffers(1)
	defer bufs.Trim()
	for name, c := range map[string]struct {
		change func(*storage.Owner)
		kept   bool
	}{
		"a live process":       {func(o *storage.Owner) { o.PID, o.Start = 1, "" }, true},
		"another host":         {func(o *storage.Owner) { o.Boot, o.PID = "another", 1<<30 }, true},
		"another container":    {func(o *storage.Owner) { o.PIDs, o.PID = "pid:[1]", 1<<30 }, true},
		"a process that ended": {func(o *storage.Owner) { o.PID = 1 << 30 }, false},
	} {
		dir := diskDir(t)
		theirs := filepath.Join(dir, prefix+"theirs")
		must(t, os.Mkdir(theirs, 0o700))
		o := storage.Self(storage.Options{Node: "theirs"})
		c.change(&o)
		must(t, os.WriteFile(filepath.Join(theirs, lockName), o.Encode(), 0o600))
		must(t, os.WriteFile(filepath.Join(theirs, "0000000000000001"+suffix), []byte("precious"), 0o600))
		openAt(t, dir, "", "ours", bufs)
		_, err := os.Stat(filepath.Join(theirs, "0000000000000001"+suffix))
		if (err == nil) != c.kept {
			t.Errorf("%s: after another's sweep: %v", name, err)
		}
		if !c.kept || name == "another container" || name == "another host" {
			continue
		}
		_, err = storage.Open(context.Background(), &url.URL{Scheme: "file", Path: dir}, storage.Options{Session: "theirs", Node: "theirs", Buffers: bufs})
		if !errors.Is(err, storage.ErrInUse) {
			t.Errorf("%s: opened again: %v, want ErrInUse", name, err)
		}
	}
}

// On a disk of this machine alone, sessions of other hosts or from before a reboot are removed after a day.
func TestASessionThatNobodyCanTellOfIsKeptForADay(t *testing.T) {
	bufs := storage.NewBuffers(1)
	defer bufs.Trim()
	dir := diskDir(t)
	theirs := filepath.Join(dir, prefix+"theirs")
	must(t, os.Mkdir(theirs, 0o700))
	lock := filepath.Join(theirs, lockName)
	o := storage.Self(storage.Options{Node: "theirs"})
	o.Boot = "another"
	must(t, os.WriteFile(lock, o.Encode(), 0o600))
	long := time.Now().Add(-keepFor - time.Hour)
	must(t, os.Chtimes(lock, long, long))
	openAt(t, dir, "", "ours", bufs)
	if _, err := os.Stat(theirs); err == nil {
		t.Error("it is still there")
	}
}
