package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
)

func TestLogsAreReadWithinBounds(t *testing.T) {
	n, c := running(t, Config{CPUs: 1}, Telemetry{})
	dir := filepath.Join(n.dir, "logs")
	task := ids.RootTask(1, 7)
	line := "level=INFO msg=x task=" + task.String() + "\n"
	long := strings.Repeat("y", 200<<10) + task.String() + "\n" // longer than what is read at once
	for name, text := range map[string]string{
		"worker-4-2026-11-21T10-00-00.000-size.err": "old\n" + line,
		"worker-4.err": "new\n" + line + strings.Repeat("z", 2000) + "\n",
		"worker-5.out": long,
		"worker-6.out": "bad \xff byte\n",
	} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(dir, "worker-4-2026-11-21T10-00-00.000-size.err")
	if err := os.Chtimes(old, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	logs := func(id string, bytes int64) map[string]state.LogStream {
		t.Helper()
		out := make(map[string]state.LogStream)
		for _, s := range must[state.Logs](t, c, state.MethodLogs, state.LogsRequest{ID: id, Bytes: bytes}).Streams {
			out[s.Worker+s.Stream] = s
		}
		return out
	}
	if all := logs("", 0); len(all) != 3 || all["worker/4err"].Size != int64(len("old\n")+len("new\n")+2*len(line)+2001) || all["worker/4err"].Path != filepath.Join(dir, "worker-4.err") {
		t.Errorf("the list: %+v", all)
	}
	if whole := logs("worker/4", 0)["worker/4err"]; whole.Omitted != 0 || !strings.HasPrefix(whole.Text, "old\n"+line+"new\n"+line) {
		t.Errorf("both parts: %+v", whole)
	}
	if end := logs("worker/4", 100)["worker/4err"]; len(end.Text) != 100 || end.Omitted != end.Size-100 || !strings.HasSuffix(end.Text, "zz\n") {
		t.Errorf("the end: %+v", end)
	}
	mine := logs(task.String(), 0)
	if s := mine["worker/4err"]; s.Text != line+line || s.Omitted != 0 {
		t.Errorf("a task's lines: %+v", s)
	}
	if s := mine["worker/5out"]; len(mine) != 2 || !strings.HasSuffix(s.Text, task.String()+"\n") || len(s.Text) > 64<<10 {
		t.Errorf("a long line: %d streams, %d bytes", len(mine), len(s.Text))
	}
	if s := logs(task.String(), int64(len(line)))["worker/4err"]; s.Text != line || s.Omitted != int64(len(line)) {
		t.Errorf("too many lines: %+v", s)
	}
	if s := logs("worker/6", 0)["worker/6out"]; s.Text != "bad ? byte\n" {
		t.Errorf("what is no text: %q", s.Text)
	}
	for r, want := range map[state.LogsRequest]error{
		{ID: "x"}: errs.ErrInvalid, {ID: "worker/x"}: errs.ErrInvalid, {ID: "9"}: errs.ErrNotFound, {ID: "worker/9"}: errs.ErrNotFound,
		{ID: ids.RootTask(9, 9).String()}: errs.ErrNotFound, {Bytes: -1}: errs.ErrInvalid, {Bytes: state.MaxLogBytes + 1}: errs.ErrInvalid,
	} {
		if _, err := ask[state.Logs](t, c, state.MethodLogs, r); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", r, err, want)
		}
	}
}
