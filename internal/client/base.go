package client

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// base is what all parts share: the configuration, and the client's lifetime.
type base struct {
	cfg    Config
	log    *slog.Logger
	id     ids.ClientID
	inline int
	root   TaskContext

	dead     chan struct{} // closed when the client has failed or was closed
	fail     sync.Once
	cause    error // why; written before dead is closed
	life     context.Context
	end      context.CancelFunc
	tasks    sync.WaitGroup // the client's own goroutines
	shutdown sync.Mutex     // guards tasks.Add against Wait
	closed   atomic.Bool    // by Close
}

// Root is the process' own implicit task: what code outside any task submits and puts
// belongs to it.
func (b *base) Root() *TaskContext { return &b.root }

// task is the task of ctx if it belongs to this client, else the client's own.
func (b *base) task(ctx context.Context) *TaskContext {
	if tc := FromContext(ctx); tc != nil && tc.Client == b.root.Client {
		return tc
	}
	return &b.root
}

// ID is the id that the node gave this client.
func (b *base) ID() ids.ClientID { return b.id }

// Welcome is what the node answered when this client joined. It must not be changed.
func (b *base) Welcome() *wire.Welcome { return b.cfg.Welcome }

// InlineMax is the size in bytes up to which a value travels inside messages.
func (b *base) InlineMax() int { return b.inline }

// SegmentSize is how many bytes the store holds; 0 if its node did not say.
func (b *base) SegmentSize() uint64 { return b.cfg.Welcome.SegmentSize }

// Trace is the trace of a new task whose caller is in parent.
func (b *base) Trace(parent wire.TraceContext, task ids.TaskID) wire.TraceContext {
	if b.cfg.Sample == nil {
		return parent
	}
	return b.cfg.Sample(parent, task)
}

// Done is closed when the client can no longer do anything; Err says why.
func (b *base) Done() <-chan struct{} { return b.dead }

// Closed tells whether Close was called: then bytes that Data has in the segment must no longer be read.
func (b *base) Closed() bool { return b.closed.Load() }

// Err is nil while the client works.
func (b *base) Err() error {
	select {
	case <-b.dead:
		return b.cause
	default:
		return nil
	}
}

// failure is Err, and never nil.
func (b *base) failure() error {
	if err := b.Err(); err != nil {
		return err
	}
	return errs.New(errs.CodeOwnerDied, "the connection to the node is gone")
}

func (b *base) waits() {
	if b.cfg.Waits != nil {
		b.cfg.Waits()
	}
}

// Go runs f in a goroutine that Close waits for, which must end when Done is closed; false if the client is closing.
func (b *base) Go(f func()) bool { return b.start(f) }

// start runs f as one of the client's own goroutines, unless it is closing.
func (b *base) start(f func()) bool {
	b.shutdown.Lock()
	defer b.shutdown.Unlock()
	if b.Err() != nil {
		return false
	}
	b.tasks.Go(f)
	return true
}

// enter counts the goroutine that runs as one of the client's own, until tasks.Done, unless the client is closing.
func (b *base) enter() bool {
	b.shutdown.Lock()
	defer b.shutdown.Unlock()
	if b.Err() != nil {
		return false
	}
	b.tasks.Add(1)
	return true
}
