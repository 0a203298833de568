package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/creack/pty"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"mobula/internal/state"
	"mobula/internal/testkit"
)

// A table is never wider than the line if that is possible, no column is cut below its least width, and columns that must
// be whole are not cut.
func TestATableFitsTheLine(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		head := []string{"TASK", "NAME", "STATE", "AGE", "REASON"}[:rapid.IntRange(1, 5).Draw(rt, "columns")]
		natural := make([]int, len(head))
		for i, h := range head {
			natural[i] = max(len(h), rapid.IntRange(1, 60).Draw(rt, h))
		}
		width := rapid.IntRange(1, 200).Draw(rt, "width")
		at := fit(width, head, natural, []string{"TASK", "AGE"}, []string{"REASON", "NAME"})
		for i, h := range head {
			out := at[i] == 0
			switch {
			case out && h != "REASON" && h != "NAME", h == "NAME" && out && len(head) == 5 && at[4] != 0:
				rt.Fatalf("%s is left out: %v of %v in %d", h, at, natural, width)
			case at[i] > natural[i], !out && at[i] < min(natural[i], narrow), !out && (h == "TASK" || h == "AGE") && at[i] != natural[i]:
				rt.Fatalf("%s has %d: %v of %v in %d", h, at[i], at, natural, width)
			}
		}
		if total(natural) <= width && total(at) != total(natural) {
			rt.Fatalf("%v is made %v though there is room in %d", natural, at, width)
		}
		if total(at) > width { // only what must be whole, or can be no narrower
			for i, h := range head {
				if h == "REASON" && at[i] != 0 || h == "NAME" && at[i] != 0 || h == "STATE" && at[i] > narrow {
					rt.Fatalf("%v of %v is wider than %d", at, natural, width)
				}
			}
		}
	})
}

// terminal runs the command in a process of its own on a terminal of the given size.
func terminal(t *testing.T, cols, lines uint16, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), childEnv+"=1", "MOBULA_CONFIG=/dev/null")
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: lines})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // what is left to read does not matter
	return cmd, f
}

// readAll reads a terminal to the end of its process: there Linux says EIO.
func readAll(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := io.ReadAll(f)
	if err != nil && !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// Tables fit the terminal: texts are cut with an ellipsis, ids stay whole; what is no terminal gets everything.
func TestTablesFitTheTerminal(t *testing.T) {
	addr := fakeNode(t, replies)
	for _, list := range []string{"tasks", "actors", "objects", "workers", "graphs", "jobs", "components"} {
		for _, cols := range []uint16{80, 100, 132, 400} {
			cmd, f := terminal(t, cols, 40, "list", list, "--address", addr)
			out := readAll(t, f)
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			for _, l := range lines {
				if w := text.StringWidth(l); w > int(cols) && !strings.HasPrefix(l, "no room here for ") {
					t.Errorf("list %s on %d columns has a line of %d: %s", list, cols, w, l)
				}
			}
			if first := strings.Fields(lines[1])[0]; strings.HasSuffix(first, "…") || list == "tasks" && first != taskID {
				t.Errorf("list %s on %d columns: the id is cut: %s", list, cols, lines[1])
			}
			if list == "tasks" {
				if cut := strings.Contains(out, "…"); cut != (cols < 400) {
					t.Errorf("on %d columns: %s", cols, out)
				}
				if said := strings.Contains(out, "no room here for "); said && cols == 400 || !said && cols == 80 {
					t.Errorf("on %d columns: %s", cols, out)
				}
			}
		}
	}
	if _, out, _ := command(t, nil, "list", "tasks", "--address", addr); !strings.Contains(out, strings.Repeat("x", 200)) || strings.Contains(out, "…") {
		t.Errorf("what is no terminal gets %s", out)
	}
}

// On a terminal each output replaces the one before, and no more is shown than fits; Ctrl-C ends it without an error.
func TestWatchDrawsAnew(t *testing.T) {
	var asked atomic.Int32
	addr := fakeNode(t, map[string]any{state.MethodTasks: func([]byte) any {
		p := state.Page[state.Task]{Total: 100}
		for range 100 {
			p.Rows = append(p.Rows, state.Task{ID: taskID, Name: "look " + strings.Repeat("i", int(asked.Load())), State: "RUNNING", Job: "1"})
		}
		asked.Add(1)
		return p
	}})
	cmd, f := terminal(t, 90, 12, "list", "tasks", "--watch", "100ms", "--address", addr)
	in := bufio.NewReader(f)
	var all strings.Builder
	for frames := 0; frames < 3; {
		c, err := in.ReadByte()
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
		all.WriteByte(c)
		if strings.HasSuffix(all.String(), "\x1b[J") {
			frames++
		}
	}
	if _, err := f.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, in) // to its end
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	text := all.String()
	if !strings.HasPrefix(text, "\x1b[2J\x1b[H") || strings.Count(text, "\x1b[2J") != 1 || !strings.Contains(text, "look ii") {
		t.Errorf("it draws %q", text)
	}
	for _, frame := range strings.Split(text, "\x1b[J")[:3] {
		lines := strings.Split(frame, "\n")
		if len(lines) != 12 || !strings.Contains(lines[0], "mobula list tasks   every 100ms") || !strings.Contains(lines[10], "lines more") {
			t.Errorf("a frame of a terminal with 12 lines is %q", frame)
		}
	}
}

// Elsewhere each output is appended: with --json one line each.
func TestWatchAppends(t *testing.T) {
	addr := fakeNode(t, replies)
	for _, args := range []string{"status --watch=100ms", "list tasks -w 100ms --json", "memory --watch 100ms --json", "explain --watch 100ms " + taskID + " --json"} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		var errOut bytes.Buffer
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, append(strings.Fields(args), "--address", addr), nil, w, &errOut)
			_ = w.Close() // never fails
		}()
		in := bufio.NewScanner(r)
		in.Buffer(nil, 1<<20)
		var seen, blank int
		for seen < 3 && in.Scan() {
			switch {
			case strings.Contains(args, "--json"):
				var v map[string]any
				if err := json.Unmarshal(in.Bytes(), &v); err != nil {
					t.Errorf("%s: %v of %s", args, err, in.Text())
				}
				seen++
			case strings.HasPrefix(in.Text(), "node "):
				seen++
			case in.Text() == "":
				blank++
			}
			if strings.Contains(in.Text(), "\x1b") {
				t.Errorf("%s: %q", args, in.Text())
			}
		}
		cancel()
		for in.Scan() { // what it is still writing
		}
		if c := <-code; c != exitDone || errOut.Len() > 0 || seen != 3 {
			t.Errorf("%s: exit %d, %s after %d", args, c, errOut.String(), seen)
		}
	}
	for _, args := range []string{"status --watch=0s", "list tasks --watch 1ms", "status --watch=soon", "version --watch"} {
		if code, _, errOut := command(t, nil, append(strings.Fields(args), "--address", addr)...); code != exitUsage || !strings.Contains(errOut, "watch") {
			t.Errorf("%s: exit %d, %s", args, code, errOut)
		}
	}
	// A node that is gone ends it, with that exit code.
	if code, _, errOut := command(t, nil, "status", "--watch", "--address", "/no/such.sock"); code != exitNoNode {
		t.Errorf("exit %d, %s", code, errOut)
	}
}
