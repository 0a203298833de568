package worker

import (
	"context"
	"log/slog"
	"time"

	"mobula/internal/client"
	"mobula/internal/direct/shell"
	inject "mobula/internal/fault"
	"mobula/internal/registry"
	"mobula/wire"
)

// Config says how an executor works. Client is required.
type Config struct {
	Client *client.Client // reports go through it, and tasks use it for nested calls
	Memory client.Memory  // where stored arguments lie; nil if there are none

	Lookup func(name string) (*registry.Function, bool) // nil: registry.Lookup
	Base   context.Context                              // parent of every task's context; nil: context.Background
	Now    func() int64                                 // nanoseconds; nil: the node's clock
	Log    *slog.Logger                                 // nil: slog.Default

	Mailboxes *shell.Mailboxes // where those of this process' actors are found, by which their calls run; nil: the owner pushes them, and lanes run them

	Faults *inject.Injector // a test's; nil: none

	StatsEvery time.Duration // 0: 1 s; negative: never
	StopGrace  time.Duration // how long an actor's Close or Stop may take; 0: 5 s

	// Context decorates a task's context before the call, for tracing; the function it
	// returns, which may be nil, is called with the task's error when the call ended. nil: no
	// decoration. It is on the hot path.
	Context func(ctx context.Context, spec *wire.TaskSpec, attempt uint32) (context.Context, func(err error))

	returned *innerCtx // made by New: of the tasks that have returned, and whose code has asked for none
}

const (
	doneBatch  = 32                     // so many Dones are sent at once although more tasks wait
	doneDelay  = 500 * time.Microsecond // the longest that a Done waits to be sent with others while the next task runs
	laneLinger = 2                      // stats periods that an idle lane's goroutine is kept

	unreadMost    = 16 << 20        // bytes of answers that a process may leave unacknowledged
	straightGrace = 2 * time.Second // how long a call that went straight may run past its deadline, as one that the owner pushed (owner.Config.CancelGrace)
)
