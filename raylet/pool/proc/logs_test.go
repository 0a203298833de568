package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
)

// written makes log files of the given sizes, each a second younger than the one before.
func written(t *testing.T, files ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, f := range files {
		path := filepath.Join(dir, f)
		if err := os.WriteFile(path, make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1_700_000_000+int64(i), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func namesIn(dir string) (out []string) {
	for _, f := range LogFiles(dir) {
		out = append(out, filepath.Base(f.Path))
	}
	return out
}

func TestLogFilesAreFoundInOrder(t *testing.T) {
	dir := written(t, "worker-7-2026-11-21T10-00-00.000-size.err", "node.log", "worker-3.out", "worker-x.err", "worker-7.err", "worker-7.txt")
	got := LogFiles(dir)
	want := []LogFile{
		{Worker: 7, Stream: "err", Size: 10, Current: false}, {Worker: 3, Stream: "out", Size: 10, Current: true}, {Worker: 7, Stream: "err", Size: 10, Current: true},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, f := range got {
		f.Path, f.Changed = "", time.Time{}
		if f != want[i] {
			t.Errorf("file %d is %+v, want %+v", i, f, want[i])
		}
	}
	if l := LogFiles(filepath.Join(dir, "none")); l != nil {
		t.Errorf("a directory that is not there has %+v", l)
	}
}

func TestLogsOfTheDeadAreBounded(t *testing.T) {
	files := []string{"worker-1.err", "worker-2.err", "worker-3.err", "worker-4.err", "worker-5.err", "node.log"}
	alive := func(w ids.WorkerID) bool { return w == 1 }
	for _, c := range []struct {
		files int
		bytes int64
		want  []string
	}{
		{10, 1000, []string{"worker-1.err", "worker-2.err", "worker-3.err", "worker-4.err", "worker-5.err"}},
		{2, 1000, []string{"worker-1.err", "worker-4.err", "worker-5.err"}},
		{10, 30, []string{"worker-1.err", "worker-3.err", "worker-4.err", "worker-5.err"}},
		{0, 1000, []string{"worker-1.err"}},
	} {
		dir := written(t, files...)
		prune(dir, alive, c.files, c.bytes)
		if got := namesIn(dir); !slices.Equal(got, c.want) {
			t.Errorf("%d files of %d bytes: %v stay, want %v", c.files, c.bytes, got, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "node.log")); err != nil {
			t.Errorf("what is not a worker's: %v", err)
		}
	}
}

func TestTheNewestNamesAreRemembered(t *testing.T) {
	var n names
	for i := range maxNames + 10 {
		n.note(ids.ClientID(i), ids.WorkerID(i))
		n.note(ids.ClientID(i), ids.WorkerID(i)) // again, after a restart of the pool
	}
	if len(n.of) != maxNames || n.order.Len() != maxNames {
		t.Fatalf("%d names in %d places", len(n.of), n.order.Len())
	}
	for _, i := range []int{10, maxNames + 9} {
		if w, ok := n.of[ids.ClientID(i)]; !ok || w != ids.WorkerID(i) {
			t.Error(fmt.Sprint(i, w, ok))
		}
	}
	if _, ok := n.of[9]; ok {
		t.Error("the oldest is kept")
	}
}
