package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mobula"
)

// Counter counts, and saves what it promised before it answers.
type Counter struct {
	path  string
	state state
}

type state struct {
	Value int
	Last  int // number of the last call that was counted
}

// NewCounter constructs the actor, the first time and after each crash: the state is in the file.
func NewCounter(_ context.Context, path string) (*Counter, error) {
	c := &Counter{path: path}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	return c, json.Unmarshal(data, &c.state)
}

// Add counts a call by its number. A call in flight when the process died is made again, so one
// that was counted already is only answered.
func (c *Counter) Add(_ context.Context, call, by int) (int, error) {
	if call <= c.state.Last {
		return c.state.Value, nil
	}
	next := state{Value: c.state.Value + by, Last: call}
	data, err := json.Marshal(next)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(c.path+".new", data, 0o600); err != nil {
		return 0, err
	}
	if err := os.Rename(c.path+".new", c.path); err != nil {
		return 0, err
	}
	c.state = next
	return next.Value, nil
}

// PID names the process that the actor lives in.
func (c *Counter) PID(context.Context) (int, error) { return os.Getpid(), nil }

// The actor's type, restarted without bound, its calls retried without bound, and its methods.
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
		r, err := run(ctx, filepath.Join(dir, "state"), *calls, *every)
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
