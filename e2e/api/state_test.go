package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

func TestTheNodeTellsOfItself(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	dir := t.TempDir()
	held := e2eHold.Go(ctx, mobula.V(dir), mobula.V("a"), mobula.Label("labelled"))
	testkit.Eventually(t, "it runs", exists(filepath.Join(dir, "a.began")))
	s, err := c.Status(ctx)
	if err != nil || s.Node != c.Node() || s.PID != os.Getpid() || s.Store.Limit == 0 || s.Address != c.Address() {
		t.Errorf("status %+v, %v", s, err)
	}
	tasks, err := c.ListTasks(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "name", Value: "labelled"}}})
	if err != nil || len(tasks.Rows) != 1 {
		t.Errorf("tasks %+v, %v", tasks, err)
	}
	a := spawn(ctx, t, 1)
	if err := a.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	actors, err := c.ListActors(ctx, mobula.Query{})
	if err != nil || len(actors.Rows) != 1 || actors.Rows[0].ID != a.ID() {
		t.Errorf("actors %+v, %v, want %v", actors, err, a)
	}
	put, err := mobula.Put(ctx, make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := c.ListObjects(ctx, mobula.Query{})
	if err != nil || objects.Total == 0 {
		t.Errorf("objects %+v, %v", objects, err)
	}
	for _, id := range []string{held.ID(), put.ID()} {
		if x, err := c.Explain(ctx, id); err != nil {
			t.Errorf("explain %s: %+v, %v", id, x, err)
		}
	}
	if _, err := c.ListWorkers(ctx, mobula.Query{}); err != nil {
		t.Error(err)
	}
	parts, err := c.ListComponents(ctx, mobula.Query{})
	if err != nil || parts.Total < 3 {
		t.Errorf("components %+v, %v", parts, err)
	}
	if _, err := c.ListTasks(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "nonsense"}}}); !errors.Is(err, mobula.ErrInvalid) || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a field that is none: %v", err)
	}
	if err := note(filepath.Join(dir, "go"), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Get(ctx); err != nil {
		t.Error(err)
	}
}

var e2eTalk = mobula.Register2("e2e/talk", func(ctx context.Context, log string, deaths int) (int, error) {
	if err := note(log, "x"); err != nil {
		return 0, err
	}
	n, err := size(log)
	fmt.Println("printed by try", n)
	slog.InfoContext(ctx, "this is try", "n", n)
	if err == nil && n <= deaths {
		err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return n, err
})

// What a task logged is there after its worker died, of all its attempts.
func TestV11LogsOutliveTheirWorker(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithCPUs(1), mobula.WithProcesses())
	ctx := c.Context(t.Context())
	first := e2eTalk.Go(ctx, mobula.V(filepath.Join(t.TempDir(), "a")), mobula.V(2))
	other := e2eTalk.Go(ctx, mobula.V(filepath.Join(t.TempDir(), "b")), mobula.V(0))
	get(ctx, t, first, 3)
	get(ctx, t, other, 1)
	task, _, _ := strings.Cut(first.ID(), ":")
	var text string
	testkit.Eventually(t, "all has been written", func() bool {
		streams, err := c.Logs(ctx, task, 0)
		text = ""
		for _, s := range streams {
			text += s.Text
		}
		return err == nil && len(streams) == 3 && strings.Count(text, "\n") == 3
	})
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		for _, want := range []string{"task=" + task, "func=e2e/talk", fmt.Sprint("attempt=", i+1), fmt.Sprint("n=", i+1), `"this is try"`} {
			if !strings.Contains(line, want) {
				t.Errorf("line %d has no %s: %s", i+1, want, line)
			}
		}
	}
	var all []mobula.LogStream
	testkit.Eventually(t, "what three workers said and printed has been written", func() bool {
		var err error
		all, err = c.Logs(ctx, "", 0)
		unwritten := slices.ContainsFunc(all, func(s mobula.LogStream) bool { return s.Size == 0 })
		return err == nil && len(all) >= 6 && !unwritten
	})
	for _, s := range all {
		if s.Text != "" || s.Path == "" || s.Changed == 0 {
			t.Errorf("a log: %+v", s)
		}
	}
	dead, err := c.Logs(ctx, all[0].Worker, 1000)
	if err != nil || len(dead) != 2 || !strings.Contains(dead[0].Text+dead[1].Text, "printed by try 1\n") {
		t.Errorf("the first worker's: %+v, %v", dead, err)
	}
	workers, err := c.ListWorkers(ctx, mobula.Query{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, w := range workers.Rows {
		streams, err := c.Logs(ctx, w.ID, 0)
		found = found || err == nil && len(streams) == 2
	}
	if !found {
		t.Errorf("none of %+v has written", workers.Rows)
	}
	for id, want := range map[string]error{"nobody": mobula.ErrInvalid, "worker/999": mobula.ErrNotFound, "77": mobula.ErrNotFound, strings.Repeat("0", 32): mobula.ErrNotFound} {
		if _, err := c.Logs(ctx, id, 0); !errors.Is(err, want) {
			t.Errorf("logs of %q: %v", id, err)
		}
	}
	if _, err := c.Logs(ctx, "", -1); !errors.Is(err, mobula.ErrInvalid) {
		t.Errorf("of -1 bytes: %v", err)
	}
}

// shared is a buffer that workers write to while a test reads it.
type shared struct {
	mu sync.Mutex
	b  strings.Builder // guarded by mu
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// What tasks print in worker processes is seen by the program that asked for it.
func TestV11WorkersOutputIsMirrored(t *testing.T) {
	var out shared
	ctx := mobulatest.Context(t, mobula.WithCPUs(1), mobula.WithProcesses(), mobula.WithWorkerOutput(&out))
	get(ctx, t, e2eTalk.Go(ctx, mobula.V(filepath.Join(t.TempDir(), "a")), mobula.V(1)), 2)
	line := regexp.MustCompile(`(?m)^\(worker/(\d+)\) printed by try ([12])$`)
	testkit.Eventually(t, "both tries are heard", func() bool { return len(line.FindAllString(out.String(), -1)) == 2 })
	got := line.FindAllStringSubmatch(out.String(), -1)
	if got[0][2] != "1" || got[1][2] != "2" || got[0][1] == got[1][1] {
		t.Errorf("the lines %q", got)
	}
	testkit.Eventually(t, "standard error too", func() bool { return strings.Count(out.String(), `msg="this is try"`) == 2 })
}
