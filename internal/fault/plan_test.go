package fault

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// askMain asks about the place "there" until nobody answers, and says what it was told.
func askMain(path string) {
	r, err := Dial(path)
	if err != nil {
		fmt.Println("failed", err)
		return
	}
	Activate(&Injector{D: r, Who: Subject{PID: os.Getpid(), Worker: true}})
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		fmt.Println(Point(context.Background(), "there"))
	}
}

type asker struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startAsker(t *testing.T, p *Plan) *asker {
	t.Helper()
	cmd := asks(t, p)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &asker{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	a.says("ready")
	return a
}

func (a *asker) goes() {
	a.t.Helper()
	if _, err := io.WriteString(a.in, "\n"); err != nil {
		a.t.Fatal(err)
	}
}

func (a *asker) says(want string) {
	a.t.Helper()
	if a.out.Scan(); a.out.Text() != want {
		a.t.Fatalf("the process says %q, want %q", a.out.Text(), want)
	}
}

func open(t *testing.T, rules ...Rule) *Plan {
	t.Helper()
	p := New(1, rules)
	if err := p.Check(Mode{Processes: true, Node: true}); err != nil {
		t.Fatal(err)
	}
	if opened, err := p.Open(); err != nil || !opened {
		t.Fatal(opened, err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

var there = Site{Kind: Place, Name: "there"}

func TestAnotherProcessFails(t *testing.T) {
	p := open(t, Rule{At: there, Nth: 2, Do: Fail, Err: errs.New(errs.CodeUnknown, "no luck")})
	a := startAsker(t, p)
	for _, want := range []string{"<nil>", "no luck", "<nil>"} {
		a.goes()
		a.says(want)
	}
	if ev := p.Events(); len(ev) != 1 || ev[0].N != 2 || ev[0].Site != there {
		t.Errorf("%+v", ev)
	}
}

// Occurrences are counted once for all processes: the second life of one goes on where the first has ended.
func TestAnotherProcessIsKilled(t *testing.T) {
	p := open(t, Rule{At: there, Nth: 2, Times: 2, Do: Crash})
	for _, before := range []int{1, 0} {
		a := startAsker(t, p)
		for range before {
			a.goes()
			a.says("<nil>")
		}
		a.goes()
		if a.out.Scan() {
			t.Fatalf("a process that was killed says %q", a.out.Text())
		}
	}
	a := startAsker(t, p)
	a.goes()
	a.says("<nil>")
	if p.Count("there") != 4 || p.Wrong() != nil {
		t.Errorf("reached %d times, %v", p.Count("there"), p.Wrong())
	}
}

func stopped(t *testing.T, pid int) bool {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var state rune
	if _, err := fmt.Sscanf(string(text), "%d %s %c", &pid, &name, &state); err != nil {
		t.Fatal(err)
	}
	return state == 'T'
}

func TestAnotherProcessIsFrozen(t *testing.T) {
	const more = 50
	p := open(t, Rule{At: there, Do: Freeze}, Rule{At: there, Nth: 2, Do: Freeze, Least: time.Millisecond}, Rule{At: there, Nth: 3, Times: more, Do: Freeze})
	a := startAsker(t, p)
	a.goes()
	if err := p.Reached(t.Context(), "there", 1); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "stopped", func() bool { return stopped(t, a.cmd.Process.Pid) }) // of the kernel there is no notice
	p.Thaw()
	a.says("<nil>")
	a.goes() // thawed by itself
	a.says("<nil>")
	for i := range more { // who is told that a process is there does not thaw it too early
		a.goes()
		if err := p.Reached(t.Context(), "there", 3+i); err != nil {
			t.Fatal(err)
		}
		p.Thaw()
		a.says("<nil>")
	}
}

func TestHoldAndRelease(t *testing.T) {
	p := open(t)
	p.Hold("there")
	a := startAsker(t, p)
	a.goes()
	mine := make(chan error, 1)
	go func() { mine <- Point(t.Context(), "there") }()
	if err := p.Reached(t.Context(), "there", 2); err != nil {
		t.Fatal(err)
	}
	select {
	case <-mine:
		t.Error("nobody was held")
	default:
	}
	p.Release("there")
	a.says("<nil>")
	if err := <-mine; err != nil {
		t.Error(err)
	}
	if err := Point(t.Context(), "there"); err != nil { // is held no more
		t.Error(err)
	}
}

// Who is cancelled while the plan is asked does not begin, as who is cancelled while he is delayed: what the plan would have said is not known.
func TestWhoIsCancelledWhileHeAsksDoesNotBegin(t *testing.T) {
	p := open(t)
	p.Hold("there")
	r, err := Dial(p.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() { got <- (&Injector{D: r}).apply(ctx, Site{Kind: Place, Name: "there"}) }()
	if err := p.Reached(t.Context(), "there", 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := testkit.Receive(t, "the end of the question", got); !errors.Is(err, context.Canceled) {
		t.Errorf("it goes on with %v", err)
	}
}

// A held process that dies, is given up, or outlives the plan blocks nobody.
func TestNobodyIsHeldForEver(t *testing.T) {
	p := open(t)
	p.Hold("there")
	a := startAsker(t, p)
	a.goes()
	if err := p.Reached(t.Context(), "there", 1); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() { given <- Point(ctx, "there") }()
	if err := p.Reached(t.Context(), "there", 2); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-given; err != nil {
		t.Error(err)
	}
	if err := p.Reached(ctx, "there", 3); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting in vain: %v", err)
	}
	b := startAsker(t, p)
	b.goes()
	if err := p.Reached(t.Context(), "there", 3); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	b.says("<nil>")
	b.goes() // the plan is gone
	b.says("<nil>")
}

func TestTheTestsOwnProcessIsSpared(t *testing.T) {
	p := open(t, Rule{At: there, Do: Crash}, Rule{At: there, Nth: 2, Do: KillNode})
	for range 2 {
		if err := Point(t.Context(), "there"); err != nil {
			t.Error(err)
		}
	}
	if err := p.Wrong(); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a fault that could not be made: %v", err)
	}
}

func TestOnePlanAtATime(t *testing.T) {
	p := open(t)
	if _, err := New(2, nil).Open(); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a second plan: %v", err)
	}
	if opened, err := p.Open(); opened || err != nil {
		t.Errorf("the same again: %v, %v", opened, err)
	}
	if Current() != p {
		t.Error("it is not this process' own")
	}
}

func BenchmarkPointOff(b *testing.B) {
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_ = Point(ctx, "there")
	}
}
