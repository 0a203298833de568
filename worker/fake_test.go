package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/direct/shell"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/testkit"
	"mobula/wire"
)

// peer is the scripted node of a test: it records what the worker sends and answers
// creates from an arena.
type peer struct {
	t testing.TB
	e *Executor
	c *client.Client

	mu    sync.Mutex
	log   []wire.Msg
	more  chan struct{} // closed when something was logged
	arena []byte
	used  uint64
	limit uint64 // of one object
	seq   uint64
	seen  int // answers to StopActor
	funcs map[string]*registry.Function
	sends func([]wire.Msg) // called just before messages are sent; may be nil
}

// inBothWays runs a test where lanes run an actor's calls, and where a mailbox does.
func inBothWays(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Run("lanes", func(t *testing.T) { f(t, Config{}) })
	t.Run("mailbox", func(t *testing.T) { f(t, Config{Mailboxes: new(shell.Mailboxes)}) })
}

func newPeer(t testing.TB, cfg Config) *peer {
	p := &peer{t: t, more: make(chan struct{}), arena: make([]byte, 1<<20), limit: 1 << 20, funcs: map[string]*registry.Function{}}
	p.c = client.New(client.Config{Port: p, Memory: p, Log: slog.New(slog.DiscardHandler),
		Welcome:  &wire.Welcome{Client: 5, Job: 9, Root: ids.RootTask(9, 5), InlineMax: 1024},
		Holdings: func(h *wire.Holdings) { p.e.Holdings(h) }, Waits: func() { p.e.reader.handOver() }})
	cfg.Client, cfg.Memory = p.c, p
	cfg.Lookup = func(name string) (*registry.Function, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		f, ok := p.funcs[name]
		return f, ok
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.StatsEvery == 0 {
		cfg.StatsEvery = -1
	}
	p.e = New(cfg)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
		defer cancel()
		if err := p.e.Close(ctx); err != nil {
			t.Errorf("close the executor: %v", err)
		}
		if err := p.c.Close(ctx); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return p
}

func (p *peer) Close() error { return nil }

func (p *peer) Send(msgs ...wire.Msg) error {
	p.mu.Lock()
	if p.sends != nil {
		p.sends(msgs)
	}
	p.log = append(p.log, msgs...)
	close(p.more)
	p.more = make(chan struct{})
	var out []wire.Msg
	for _, m := range msgs {
		if q, ok := m.(*wire.Create); ok {
			a := &wire.Created{Req: q.Req, ID: q.ID}
			if q.Size > p.limit {
				a.Err = errs.New(errs.CodeObjectTooLarge, "asked %d, limit %d", q.Size, p.limit)
			} else {
				a.Extent = wire.Extent{Off: p.used, Size: q.Size}
				p.used += q.Size
			}
			out = append(out, a)
		}
	}
	p.mu.Unlock()
	for _, m := range out {
		p.c.Dispatch(m)
	}
	return nil
}

func (p *peer) Map(e wire.Extent, _ bool) ([]byte, error) {
	if e.Off+e.Size > uint64(len(p.arena)) {
		return nil, fmt.Errorf("extent %v is outside", e)
	}
	return p.arena[e.Off : e.Off+e.Size : e.Off+e.Size], nil
}

// await waits until pick finds what it looks for in the worker's messages.
func await[T any](p *peer, what string, pick func(log []wire.Msg) (T, bool)) T {
	p.t.Helper()
	deadline := time.NewTimer(testkit.Patience())
	defer deadline.Stop()
	for {
		p.mu.Lock()
		v, ok := pick(p.log)
		more := p.more
		p.mu.Unlock()
		if ok {
			return v
		}
		select {
		case <-more:
		case <-deadline.C:
			p.t.Fatalf("did not come: %s", what)
		}
	}
}

// of gives the messages of a type.
func of[M wire.Msg](log []wire.Msg) []M {
	var out []M
	for _, m := range log {
		if v, ok := m.(M); ok {
			out = append(out, v)
		}
	}
	return out
}

func (p *peer) done(task ids.TaskID) *wire.Done {
	p.t.Helper()
	return await(p, "Done of "+task.String(), func(log []wire.Msg) (*wire.Done, bool) {
		for _, d := range of[*wire.Done](log) {
			if d.Task == task {
				return d, true
			}
		}
		return nil, false
	})
}

// returned waits for the second report of an abandoned task, which says that it does not run any more.
func (p *peer) returned(task ids.TaskID) {
	p.t.Helper()
	both := await(p, "two Dones of "+task.String(), func(log []wire.Msg) ([]*wire.Done, bool) {
		both := slices.DeleteFunc(of[*wire.Done](log), func(d *wire.Done) bool { return d.Task != task })
		return both, len(both) > 1
	})
	if len(both) != 2 || !both[0].StillRuns || both[1].StillRuns || !errors.Is(both[1].Err, errs.ErrCancelled) || len(both[1].Results) > 0 {
		p.t.Errorf("an abandoned task is reported as %+v", both)
	}
}

func (p *peer) dones(n int) []*wire.Done {
	p.t.Helper()
	return await(p, fmt.Sprintf("%d Dones", n), func(log []wire.Msg) ([]*wire.Done, bool) {
		ds := of[*wire.Done](log)
		return ds, len(ds) >= n
	})
}

// stopped is the next answer to StopActor.
func (p *peer) stopped() *wire.ActorStopped {
	p.t.Helper()
	n := p.seen
	p.seen++
	return await(p, "ActorStopped", func(log []wire.Msg) (*wire.ActorStopped, bool) {
		if ms := of[*wire.ActorStopped](log); len(ms) > n {
			return ms[n], true
		}
		return nil, false
	})
}

type body = func(ctx context.Context, c *registry.Call) ([]registry.Output, any, error)

// handle registers a function for this test and gives the options of a call.
func (p *peer) handle(name string, kind wire.TaskKind, f body) *wire.TaskOptions {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.funcs[name] = &registry.Function{Name: name, Kind: kind, Invoke: f}
	return &wire.TaskOptions{Func: name, NumReturns: 1}
}

func (p *peer) task(opts *wire.TaskOptions, args ...wire.Arg) wire.ExecTask {
	p.seq++
	return wire.ExecTask{Spec: &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), p.seq), Opts: opts, Args: args}, Attempt: 1}
}

func (p *peer) exec(lease ids.LeaseID, ts ...wire.ExecTask) {
	p.e.Deliver([]wire.Msg{&wire.Exec{Lease: lease, Tasks: ts}})
}

// create makes an actor and waits for it.
func (p *peer) create(lease ids.LeaseID, opts *wire.TaskOptions) ids.ActorID {
	p.t.Helper()
	t := p.task(opts)
	t.Spec.Kind = wire.TaskActorCreate
	p.exec(lease, t)
	if d := p.done(t.Spec.ID); d.Err != nil {
		p.t.Fatalf("creation: %v", d.Err)
	}
	return ids.ActorID(t.Spec.ID)
}

func (p *peer) call(a ids.ActorID, opts *wire.TaskOptions) wire.ExecTask {
	t := p.task(opts)
	t.Spec.Kind, t.Spec.Actor, t.Spec.Seq = wire.TaskActorCall, a, p.seq
	return t
}

func out(s string) []registry.Output {
	return []registry.Output{{Size: len(s), Inline: []byte(s)}}
}

func ok(context.Context, *registry.Call) ([]registry.Output, any, error) { return out("ok"), nil, nil }

// hold gives a function that reports its start, and ends when it is released or its context ends.
func hold() (f body, started chan string, goOn chan struct{}) {
	started, goOn = make(chan string, 100), make(chan struct{})
	return func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		started <- client.FromContext(ctx).Task.String()
		select {
		case <-goOn:
			return out("held"), nil, nil
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}, started, goOn
}
