package proc

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
)

// asTemplate is a template whose workers behave as life says. It refuses worker 13.
func asTemplate(life string) {
	runtime.LockOSThread() // its workers die with it
	conn, err := net.FileConn(os.NewFile(templateFD, "template"))
	if err != nil {
		panic(err)
	}
	c := conn.(*net.UnixConn)
	var mu sync.Mutex
	say := func(m fromTemplate) {
		data, _ := json.Marshal(m)
		mu.Lock()
		defer mu.Unlock()
		_, _ = c.Write(data)
	}
	fmt.Fprintln(os.Stderr, "template", os.Getpid(), os.Args[1:])
	buf, oob := make([]byte, maxDatagram), make([]byte, 100)
	for {
		n, k, _, _, err := c.ReadMsgUnix(buf, oob)
		if err != nil || n == 0 {
			os.Exit(0)
		}
		var m toTemplate
		if err := json.Unmarshal(buf[:n], &m); err != nil {
			panic(err)
		}
		cms, _ := unix.ParseSocketControlMessage(oob[:k])
		fds, _ := unix.ParseUnixRights(&cms[0])
		out, errOut := os.NewFile(uintptr(fds[0]), "out"), os.NewFile(uintptr(fds[1]), "err")
		switch m.ID {
		case 13:
			say(fromTemplate{Op: "failed", ID: m.ID, Error: "no luck"})
		case 99:
			os.Exit(5)
		default:
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = []string{"PROC_TEST=" + life}
			for k, v := range m.Env {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			slices.Sort(cmd.Env)
			cmd.Stdout, cmd.Stderr = out, errOut
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			if err := cmd.Start(); err != nil {
				panic(err)
			}
			say(fromTemplate{Op: "forked", ID: m.ID, PID: cmd.Process.Pid})
			go func() {
				_ = cmd.Wait()
				e := fromTemplate{Op: "exited", ID: m.ID, PID: cmd.Process.Pid}
				if st := cmd.ProcessState.Sys().(syscall.WaitStatus); st.Signaled() {
					e.Signal = strings.TrimPrefix(unix.SignalName(st.Signal()), "SIG")
				} else {
					e.Status = st.ExitStatus()
				}
				say(e)
			}()
		}
		_ = out.Close()
		_ = errOut.Close()
	}
}

func forks(t *testing.T, life string) (*Launcher, chan pool.Event, string) {
	t.Helper()
	return launch(t, "template-"+life, func(c *Config) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c.Program = func(ids.JobID, string) (Program, error) {
			return Program{Exe: exe, Args: []string{"of", "job"}, Template: true}, nil
		}
	})
}

func TestATemplateForksTheWorkers(t *testing.T) {
	l, events, dir := forks(t, "env")
	l.Start(pool.StartProcess{Worker: 12, Token: []byte{0xab, 1}, Job: 3, Slot: sched.SlotOwn})
	l.Start(pool.StartProcess{Worker: 14, Job: 3, Slot: sched.SlotOwn})
	for range 2 {
		if e := next(t, events).(pool.Exited); e.Exit.Status != 0 || e.Exit.Signal != "" || e.Exit.PID == 0 {
			t.Fatalf("%+v", e)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "worker-12.out"))
	if err != nil {
		t.Fatal(err)
	}
	want := "marked\nMOBULA_WORKER_ID=12\nMOBULA_WORKER_JOB=3\nMOBULA_WORKER_KIND=isolated\nMOBULA_WORKER_SOCKET=/run/node.sock\nMOBULA_WORKER_TOKEN=ab01\n"
	if string(raw) != want {
		t.Fatalf("environment\n%swant\n%s", raw, want)
	}
	l.mu.Lock()
	n, first := len(l.templates), l.templates[templateKey{job: 3}]
	l.mu.Unlock()
	if n != 1 || !strings.Contains(first.err.Tail(), "[of job]") || strings.Count(first.err.Tail(), "template") != 1 {
		t.Errorf("%d templates; the first says %q", n, first.err.Tail())
	}
	l.EndJob(3)
	testkit.Receive(t, "the end of an ended job's template", first.gone)
	l.Start(pool.StartProcess{Worker: 15, Job: 3}) // comes too late for that one
	if e := next(t, events).(pool.Exited); e.Worker != 15 {
		t.Fatalf("%+v", e)
	}
}

func TestForkedWorkersEndAsOthersDo(t *testing.T) {
	l, events, _ := forks(t, "fail")
	l.Start(pool.StartProcess{Worker: 1, Job: 1})
	e := next(t, events).(pool.Exited).Exit
	if e.Status != 3 || len(e.Tail) != TailSize || !strings.HasSuffix(e.Tail, "xthe last words") {
		t.Fatalf("%d, %d bytes of tail, %q", e.Status, len(e.Tail), e.Tail[max(0, len(e.Tail)-20):])
	}
	l.Start(pool.StartProcess{Worker: 13, Job: 1})
	if e := next(t, events).(pool.StartFailed); e.Worker != 13 || !strings.Contains(e.Err.Error(), "no luck") {
		t.Fatalf("%+v", e)
	}
	l.Start(pool.StartProcess{Worker: 99, Job: 1})
	if e := next(t, events).(pool.StartFailed); e.Worker != 99 || !strings.Contains(e.Err.Error(), "exit status 5") || !strings.Contains(e.Err.Error(), "[of job]") {
		t.Fatalf("%+v", e)
	}
	l.Start(pool.StartProcess{Worker: 2, Job: 1}) // by another template
	if e := next(t, events).(pool.Exited); e.Worker != 2 || e.Exit.Status != 3 {
		t.Fatalf("%+v", e)
	}
}

// started waits until n workers have a pid.
func started(l *Launcher, n int) []pool.Live {
	for {
		var out []pool.Live
		for _, p := range l.Live() {
			if p.PID > 0 {
				out = append(out, p)
			}
		}
		if len(out) == n {
			return out
		}
		runtime.Gosched()
	}
}

func TestForkedWorkersAreKilledAndDieWithTheirTemplate(t *testing.T) {
	l, events, _ := forks(t, "stay")
	l.Start(pool.StartProcess{Worker: 1, Job: 1})
	l.Start(pool.StartProcess{Worker: 2, Job: 1})
	live := started(l, 2)
	l.Kill(1)
	if e := next(t, events).(pool.Exited); e.Worker != 1 || e.Exit.Signal != "killed" {
		t.Fatalf("%+v", e)
	}
	l.EndJob(1) // its last worker is still there, and so is the template
	if n := len(l.Live()); n != 1 {
		t.Fatalf("%d workers", n)
	}
	l.Terminate(2)
	if e := next(t, events).(pool.Exited); e.Worker != 2 || e.Exit.Signal != "terminated" {
		t.Fatalf("%+v", e)
	}
	l.Start(pool.StartProcess{Worker: 3, Job: 2})
	pid := started(l, 1)[0].PID
	l.mu.Lock()
	template := l.templates[templateKey{job: 2}].cmd.Process.Pid
	l.mu.Unlock()
	if err := unix.Kill(template, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events).(pool.Exited); e.Worker != 3 || e.Exit.Signal != "killed" {
		t.Fatalf("%+v", e)
	}
	gone(t, int(pid))
	gone(t, int(live[0].PID))
	l.Start(pool.StartProcess{Worker: 4, Job: 2}) // left for Close
	started(l, 1)
}

// A worker that could not be asked for is not one that the template waits for.
func TestAskingATemplateThatIsGone(t *testing.T) {
	l, events, _ := forks(t, "env")
	l.Start(pool.StartProcess{Worker: 1, Job: 1})
	if e := next(t, events).(pool.Exited); e.Worker != 1 {
		t.Fatalf("%+v", e)
	}
	l.mu.Lock()
	tpl := l.templates[templateKey{job: 1}]
	l.mu.Unlock()
	_ = tpl.conn.Close() // as when it dies just now
	if _, err := tpl.ask(2, nil, os.Stdout, os.Stderr); err == nil || !strings.Contains(err.Error(), "cannot be asked for a worker") {
		t.Errorf("asked: %v", err)
	}
	tpl.mu.Lock()
	defer tpl.mu.Unlock()
	if len(tpl.forks) != 0 {
		t.Errorf("%d workers are waited for", len(tpl.forks))
	}
}

// If a template ends just when it should be asked, no worker fails: another template is started.
func TestAWorkerIsForkedThoughItsTemplateHasJustEnded(t *testing.T) {
	l, events, _ := forks(t, "env")
	l.Start(pool.StartProcess{Worker: 1, Job: 1})
	if e := next(t, events).(pool.Exited); e.Worker != 1 {
		t.Fatalf("%+v", e)
	}
	l.mu.Lock()
	tpl := l.templates[templateKey{job: 1}]
	l.mu.Unlock()
	_ = tpl.conn.Close() // as when it dies just now
	l.Start(pool.StartProcess{Worker: 2, Job: 1})
	if e, ok := next(t, events).(pool.Exited); !ok || e.Worker != 2 || e.Exit.Status != 0 {
		t.Errorf("%+v", e)
	}
}

func TestEachLanguageOfAJobHasItsTemplate(t *testing.T) {
	l, events, _ := forks(t, "env")
	for i, language := range []string{"one", "another", "one"} {
		l.Start(pool.StartProcess{Worker: ids.WorkerID(i + 1), Job: 1, Language: language})
		if e := next(t, events).(pool.Exited); e.Exit.Status != 0 {
			t.Fatalf("%+v", e)
		}
	}
	l.mu.Lock()
	one, another, n := l.templates[templateKey{1, "one"}], l.templates[templateKey{1, "another"}], len(l.templates)
	l.mu.Unlock()
	if n != 2 || one == nil || another == nil {
		t.Fatalf("%d templates", n)
	}
	l.EndJob(1)
	for _, tpl := range []*template{one, another} {
		testkit.Receive(t, "the end of an ended job's template", tpl.gone)
	}
}
