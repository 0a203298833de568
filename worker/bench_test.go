package worker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/direct/shell"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// counting is a port that counts Dones.
type counting struct {
	done atomic.Int64
	wake chan struct{}
	goal int64
}

func (p *counting) Send(msgs ...wire.Msg) error {
	n := int64(0)
	for _, m := range msgs {
		if m.Kind() == wire.KindDone {
			n++
		}
	}
	if p.done.Add(n) >= p.goal {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	return nil
}
func (p *counting) Close() error { return nil }

// BenchmarkExecutor is a trivial task on one lane: pushed 100 at a time, and one at a time.
func BenchmarkExecutor(b *testing.B) {
	for name, batch := range map[string]int{"batch=100": 100, "batch=1": 1} {
		b.Run(name, func(b *testing.B) { benchExec(b, batch, wire.TaskNormal) })
	}
	b.Run("actor/batch=100", func(b *testing.B) { benchExec(b, 100, wire.TaskActorCall) })
	b.Run("mailbox/batch=100", func(b *testing.B) { benchExecIn(b, 100, wire.TaskActorCall, new(shell.Mailboxes)) })
}

func benchExec(b *testing.B, batch int, kind wire.TaskKind) { benchExecIn(b, batch, kind, nil) }

func benchExecIn(b *testing.B, batch int, kind wire.TaskKind, boxes *shell.Mailboxes) {
	b.ReportAllocs()
	port := &counting{wake: make(chan struct{}, 1)}
	c := client.New(client.Config{Port: port, Log: slog.New(slog.DiscardHandler), Welcome: &wire.Welcome{Root: ids.RootTask(1, 1)}})
	result := []registry.Output{{Size: 1, Inline: []byte("x")}}
	f := &registry.Function{Name: "f", Kind: kind, Invoke: func(context.Context, *registry.Call) ([]registry.Output, any, error) { return result, nil, nil }}
	e := New(Config{Client: c, Mailboxes: boxes, StatsEvery: time.Hour, Lookup: func(string) (*registry.Function, bool) { return f, true }})
	opts := &wire.TaskOptions{Func: "f", NumReturns: 1}
	actor := ids.ActorID(ids.RootTask(1, 7))
	if kind == wire.TaskActorCall {
		spec := &wire.TaskSpec{ID: ids.TaskID(actor), Kind: wire.TaskActorCreate, Opts: opts}
		e.newActor(spec, 1)
		if err := e.actorMade(spec, new(int)); err != nil {
			b.Fatal(err)
		}
	}
	spec := &wire.TaskSpec{ID: ids.RootTask(1, 2), Opts: opts, Kind: kind, Actor: actor}
	tasks := make([]wire.ExecTask, batch)
	for i := range tasks {
		tasks[i] = wire.ExecTask{Spec: spec, Attempt: 1}
	}
	start := cpuTime(b)
	for b.Loop() {
		port.goal += int64(batch)
		e.Deliver([]wire.Msg{&wire.Exec{Lease: 1, Tasks: tasks}})
		for port.done.Load() < port.goal {
			<-port.wake
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/task")
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N*batch), "cpu-ns/task")
	_ = e.Close(b.Context())
	_ = c.Close(b.Context())
}

// cpuTime is the CPU time of this process in nanoseconds, which is meaningful on a busy machine too.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
