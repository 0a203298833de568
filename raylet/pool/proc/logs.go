package proc

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"mobula/internal/ids"
	"mobula/internal/queue"
)

// Bounds on the logs of workers that are gone.
const (
	maxDeadFiles = 1000    // files of LogDir
	maxDeadBytes = 1 << 30 // in all of them
	pruneEvery   = 50      // starts
	maxNames     = 10_000  // clients whose worker is remembered
)

// olderPart matches what the name of a rotated file has after the worker's number.
var olderPart = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}T.*$`)

// LogFile is a file that a worker's output went to.
type LogFile struct {
	Worker  ids.WorkerID
	Stream  string // "out" or "err"
	Path    string
	Size    int64
	Changed time.Time
	Current bool // written to while the worker lives; the others are older parts
}

// LogFiles lists the files in a directory of logs, the oldest first; a missing directory has none.
func LogFiles(dir string) []LogFile {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []LogFile
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "worker-")
		stream := strings.TrimPrefix(filepath.Ext(name), ".")
		if !ok || stream != "out" && stream != "err" {
			continue
		}
		name = strings.TrimSuffix(name, "."+stream)
		number := olderPart.ReplaceAllString(name, "")
		w, err := ids.ParseNumber[ids.WorkerID](number)
		if err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // removed meanwhile
		}
		out = append(out, LogFile{Worker: w, Stream: stream, Path: filepath.Join(dir, e.Name()), Size: info.Size(), Changed: info.ModTime(), Current: number == name})
	}
	slices.SortStableFunc(out, func(a, b LogFile) int {
		return cmp.Or(a.Changed.Compare(b.Changed), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// prune removes the oldest logs of workers that are gone, beyond their bounds.
func prune(dir string, alive func(ids.WorkerID) bool, files int, bytes int64) {
	dead := slices.DeleteFunc(LogFiles(dir), func(f LogFile) bool { return alive(f.Worker) })
	for i := len(dead) - 1; i >= 0; i-- { // the newest stay
		files--
		if bytes -= dead[i].Size; files < 0 || bytes < 0 {
			_ = os.Remove(dead[i].Path) // tried again at the next prune
		}
	}
}

// names remembers which worker a client is or was, for the newest maxNames clients.
type names struct {
	of    map[ids.ClientID]ids.WorkerID
	order queue.Queue[ids.ClientID]
}

func (n *names) note(c ids.ClientID, w ids.WorkerID) {
	if n.of == nil {
		n.of = make(map[ids.ClientID]ids.WorkerID)
	}
	if _, ok := n.of[c]; !ok {
		n.order.Push(c)
	}
	n.of[c] = w
	if n.order.Len() > maxNames {
		delete(n.of, n.order.Pop())
	}
}

// WorkerOf gives the worker that a client is or was.
func (l *Launcher) WorkerOf(c ids.ClientID) (ids.WorkerID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, ok := l.names.of[c]
	return w, ok
}
