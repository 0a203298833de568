package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"mobula"
)

// Counter counts, and writes each answer to a journal before it gives it.
type Counter struct {
	journal *os.File
	answers []int // of each call that was counted, by its number
}

// NewCounter constructs the actor, the first time and after each crash: its state is the journal.
func NewCounter(_ context.Context, path string) (*Counter, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	c := &Counter{journal: f}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: answer %d: %w", path, len(c.answers)+1, err), f.Close())
		}
		c.answers = append(c.answers, n)
	}
	return c, lines.Err()
}

// Add counts a call by its number. All calls that were under way when the process died are made again, in order;
// one that was counted already gets the same answer.
func (c *Counter) Add(_ context.Context, call, by int) (int, error) {
	switch done := len(c.answers); {
	case call <= done:
		return c.answers[call-1], nil
	case call > done+1:
		return 0, fmt.Errorf("call %d comes before call %d", call, done+1)
	}
	sum := by
	if call > 1 {
		sum += c.answers[call-2]
	}
	if _, err := fmt.Fprintln(c.journal, sum); err != nil {
		return 0, err
	}
	c.answers = append(c.answers, sum)
	return sum, nil
}

// PID names the process that the actor lives in.
func (c *Counter) PID(context.Context) (int, error) { return os.Getpid(), nil }

// The actor's type, with unbounded restarts and retries of calls, and its methods.
var (
	CounterType = mobula.RegisterActor1("counter/counter", NewCounter, mobula.MaxRestarts(-1), mobula.MaxTaskRetries(-1))
	Add         = mobula.RegisterMethod2(CounterType, "Add", (*Counter).Add)
	PID         = mobula.RegisterMethod0(CounterType, "PID", (*Counter).PID)
)

func main() {
	calls := flag.Int("calls", 2000, "to make")
	every := flag.Int("kill-every", 250, "calls, kill the actor's process; 0: never")
	if mobula.WorkerMain() {
		return
	}
	flag.Parse()
	mobula.Main(func(ctx context.Context, _ *mobula.Cluster) error {
		dir, err := os.MkdirTemp("", "counter-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }() // a temporary directory
		start := time.Now()
		r, err := run(ctx, filepath.Join(dir, "journal"), *calls, *every)
		if err != nil {
			return err
		}
		fmt.Printf("%d calls, %d processes killed, value %d, in %v\n", *calls, r.kills, r.value, time.Since(start).Round(time.Millisecond))
		return nil
	}, mobula.WithProcesses())
}

type report struct{ value, kills int }

// run makes the calls and kills the actor's process meanwhile, with SIGKILL, as a crash would.
func run(ctx context.Context, path string, calls, every int) (report, error) {
	var r report
	a, err := CounterType.Spawn(ctx, mobula.V(path))
	if err != nil {
		return r, err
	}
	var victim *os.Process
	refs := make([]mobula.Ref[int], 0, calls)
	for i := 1; i <= calls; i++ {
		refs = append(refs, Add.Go(ctx, a, mobula.V(i), mobula.V(1)))
		if every == 0 {
			continue
		}
		switch i % every {
		case 0:
			if victim, err = process(ctx, a); err != nil {
				return r, err
			}
		case every / 2: // calls are under way again
			if victim == nil {
				continue
			}
			if err := victim.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return r, err
			}
			r.kills++
		}
	}
	values, err := mobula.GetAll(ctx, refs)
	if err != nil {
		return r, err
	}
	for i, v := range values {
		if v != i+1 {
			return r, fmt.Errorf("call %d returned %d", i+1, v)
		}
	}
	r.value = calls
	return r, a.Kill(ctx)
}

// process finds the process that the actor lives in now.
func process(ctx context.Context, a mobula.ActorRef[Counter]) (*os.Process, error) {
	pid, err := PID.Go(ctx, a).Get(ctx)
	if err != nil {
		return nil, err
	}
	if pid == os.Getpid() {
		return nil, errors.New("the actor lives in this very process: start with mobula.WithProcesses")
	}
	return os.FindProcess(pid)
}
