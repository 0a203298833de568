package inspect

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/safefs"
	"mobula/internal/state"
	"mobula/internal/steady"
	"mobula/raylet/pool/proc"
)

const (
	mostReply  = 16 << 20  // bytes of all texts of one answer
	mostSearch = 256 << 20 // bytes that are looked at for one task
)

// Logs gives what workers wrote, of those that are gone too.
func (n *Inspector) Logs(ctx context.Context, r state.LogsRequest) (state.Logs, error) {
	if r.Bytes < 0 || r.Bytes > state.MaxLogBytes {
		return state.Logs{}, errs.New(errs.CodeInvalid, "%d bytes of each log are asked for: want 1 to %d", r.Bytes, state.MaxLogBytes)
	}
	l := logReader{ctx: ctx, each: cmp.Or(r.Bytes, state.DefaultLogBytes), reply: mostReply, search: mostSearch}
	l.gather(proc.LogFiles(filepath.Join(n.Dir, "logs")), n.node.Listed(), n.Clock)
	out := state.Logs{Streams: []state.LogStream{}}
	if r.ID == "" {
		for _, s := range l.streams {
			out.Streams = append(out.Streams, s.LogStream)
		}
		return out, nil
	}
	keep, take, err := n.logsOf(r.ID)
	if err != nil {
		return out, err
	}
	for _, s := range slices.Backward(l.streams) { // the newest first: the bounds cut off the oldest
		if !keep(s.worker) {
			continue
		}
		text, omitted, err := take(&l, s)
		if err != nil {
			return out, err
		}
		if text != "" {
			s.Text, s.Omitted = text, omitted
			out.Streams = append(out.Streams, s.LogStream)
		}
	}
	slices.Reverse(out.Streams)
	if len(out.Streams) == 0 {
		return out, errs.New(errs.CodeNotFound, "no worker has written anything of %s: a task's lines are those that name it, as slog's do with the task's context; what runs in a driver's own process writes to the driver's output", r.ID)
	}
	return out, nil
}

// HomeOfLog is where the log of a worker is; of all else, a task or nothing, every node may have some, and all is true.
func (n *Inspector) HomeOfLog(id string) (home ids.Home, all bool, err error) {
	if _, err := ids.ParseTask(id); err == nil || id == "" {
		return 0, true, nil
	}
	worker, err := parseWorker(id)
	return worker.Home(), false, err
}

// parseWorker reads the number of a worker, or of its client.
func parseWorker(id string) (ids.WorkerID, error) {
	worker, err := ids.ParseNumber[ids.WorkerID](strings.TrimPrefix(id, "worker/"))
	if err != nil {
		err = errs.New(errs.CodeInvalid, "logs of %q: want a task's id, a worker's as lists show it, or worker/NUMBER", id)
	}
	return worker, err
}

// logsOf gives whose logs an id means, and what of them.
func (n *Inspector) logsOf(id string) (keep func(ids.WorkerID) bool, take func(*logReader, *logStream) (string, int64, error), err error) {
	if task, err := ids.ParseTask(id); err == nil {
		id := []byte(hex.EncodeToString(task.Bytes())) // of the first home the digits that release 0.4 writes too
		return func(ids.WorkerID) bool { return true }, func(l *logReader, s *logStream) (string, int64, error) { return l.lines(s, id) }, nil
	}
	worker, err := parseWorker(id)
	if err != nil {
		return nil, nil, err
	}
	if !strings.HasPrefix(id, "worker/") {
		w, ok := n.node.Parts().Procs.WorkerOf(ids.ClientID(worker))
		if !ok {
			return nil, nil, errs.New(errs.CodeNotFound, "no worker process of this node is or was %s; mobula logs lists those that have written", id)
		}
		worker = w
	}
	return func(w ids.WorkerID) bool { return w == worker }, (*logReader).tail, nil
}

// logReader reads within the bounds of one answer.
type logReader struct {
	ctx                 context.Context
	each, reply, search int64
	streams             []*logStream // in order of their last change
}

// logStream is a worker's output and the files it lies in, the oldest first.
type logStream struct {
	state.LogStream
	worker ids.WorkerID
	files  []proc.LogFile
}

// gather makes streams of files, whose times are by the machine's wall clock: the streams' are by the node's own, as all times of a node.
func (l *logReader) gather(files []proc.LogFile, node string, clock steady.Clock) {
	type key struct {
		w ids.WorkerID
		s string
	}
	at := make(map[key]*logStream)
	for _, f := range files {
		k := key{f.Worker, f.Stream}
		s := at[k]
		if s == nil {
			s = &logStream{worker: f.Worker, LogStream: state.LogStream{Worker: fmt.Sprintf("worker/%v", f.Worker), Stream: f.Stream, Node: node}}
			at[k] = s
			l.streams = append(l.streams, s)
		}
		if s.Path == "" || f.Current {
			s.Path = f.Path
		}
		s.files = append(s.files, f)
		s.Size += f.Size
		s.Changed = max(s.Changed, clock.At(f.Changed))
	}
	slices.SortStableFunc(l.streams, func(a, b *logStream) int { return cmp.Compare(a.Changed, b.Changed) })
}

// tail is the end of a stream.
func (l *logReader) tail(s *logStream) (string, int64, error) {
	want := min(l.each, l.reply)
	var parts [][]byte
	got := int64(0)
	for _, f := range slices.Backward(s.files) {
		if got == want {
			break
		}
		b, err := readEnd(f.Path, want-got)
		if err != nil {
			return "", 0, err
		}
		parts = append(parts, b)
		got += int64(len(b))
	}
	slices.Reverse(parts)
	l.reply -= got
	return strings.ToValidUTF8(string(bytes.Join(parts, nil)), "?"), max(0, s.Size-got), nil
}

// lines are those of a stream that name a task; the last ones, if they are too many.
func (l *logReader) lines(s *logStream, id []byte) (string, int64, error) {
	var found []byte
	var omitted int64
	most := int(min(l.each, l.reply))
	for i, f := range s.files {
		if l.search < f.Size {
			for _, f := range s.files[i:] {
				omitted += f.Size
			}
			break
		}
		l.search -= f.Size
		err := eachLine(l.ctx, f.Path, func(line []byte) {
			if !bytes.Contains(line, id) {
				return
			}
			if found = append(found, line...); len(found) > 2*most {
				omitted += int64(len(found) - most)
				found = append(found[:0], found[len(found)-most:]...)
			}
		})
		if err != nil {
			return "", 0, err
		}
	}
	if over := len(found) - most; over > 0 {
		found, omitted = found[over:], omitted+int64(over)
	}
	l.reply -= int64(len(found))
	return strings.ToValidUTF8(string(found), "?"), omitted, nil
}

// eachLine calls f with each line of a file; a very long one comes in pieces.
func eachLine(ctx context.Context, path string, f func(line []byte)) error {
	file, err := safefs.OpenFile(path, os.O_RDONLY, 0)
	if os.IsNotExist(err) {
		return nil // it has just been removed
	}
	if err != nil {
		return errs.New(errs.CodeInvalid, "a worker's log: %v", err)
	}
	defer func() { _ = file.Close() }() // only read
	for r, n := bufio.NewReaderSize(file, 64<<10), 0; ; n++ {
		line, err := r.ReadSlice('\n')
		f(line)
		if n%1000 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch err {
		case nil, bufio.ErrBufferFull:
		case io.EOF:
			return nil
		default:
			return errs.New(errs.CodeInvalid, "a worker's log: %v", err)
		}
	}
}

// readEnd reads the last bytes of a file, which may have been removed meanwhile.
func readEnd(path string, most int64) ([]byte, error) {
	f, err := safefs.OpenFile(path, os.O_RDONLY, 0)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "a worker's log: %v", err)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err == nil {
		_, err = f.Seek(max(0, info.Size()-most), io.SeekStart)
	}
	var b []byte
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(f, most))
	}
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "a worker's log: %v", err)
	}
	return b, nil
}
