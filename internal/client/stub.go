package client

import (
	"context"
	"log/slog"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

type Config struct {
	Port    Port
	Welcome *wire.Welcome
	Memory  Memory
	Log     *slog.Logger

	CacheBytes   int64         // inline results kept for Get; 64 MiB
	WarnAfter    time.Duration // of a waiting get; 60 s
	FetchTimeout time.Duration // of a stored object; 600 s
}

type Client struct{}

func New(cfg Config) *Client                      { panic("stub") }
func (c *Client) Deliver(batch []wire.Msg)        { panic("stub") }
func (c *Client) Root() *TaskContext              { panic("stub") } // the process' own implicit task
func (c *Client) Close(ctx context.Context) error { panic("stub") }
func (c *Client) InlineMax() int                  { panic("stub") }

type Handle struct{}

func (h *Handle) ID() ids.ObjectID { panic("stub") }
func (h *Handle) Retain() *Handle  { panic("stub") }
func (h *Handle) Release()         { panic("stub") }

type TaskContext struct {
	Client  *Client
	Task    ids.TaskID
	Attempt uint32
	Trace   wire.TraceContext
	Spec    *wire.TaskSpec // nil for the driver's own code
}

func WithTask(ctx context.Context, tc *TaskContext) context.Context { panic("stub") }
func FromContext(ctx context.Context) *TaskContext                  { panic("stub") } // nil: none

func (tc *TaskContext) NextTask() ids.TaskID  { panic("stub") }
func (tc *TaskContext) NextPut() ids.ObjectID { panic("stub") }

// Submit sends spec; Seq of an actor call is filled in where it is 0. One handle a return; none for a stream.
func (c *Client) Submit(ctx context.Context, spec *wire.TaskSpec) ([]*Handle, error) { panic("stub") }

// Put makes an inline object under the next put id of ctx's task.
func (c *Client) Put(ctx context.Context, v wire.Value) (*Handle, error) { panic("stub") }
func (c *Client) Create(ctx context.Context, id ids.ObjectID, size uint64) (*Buffer, error) {
	panic("stub")
}

type Buffer struct{}

func (b *Buffer) ID() ids.ObjectID                                       { panic("stub") }
func (b *Buffer) Exists() bool                                           { panic("stub") } // the object is sealed already: nothing need be written
func (b *Buffer) Bytes() []byte                                          { panic("stub") }
func (b *Buffer) Seal(meta []byte, refs []ids.ObjectID) (*Handle, error) { panic("stub") }
func (b *Buffer) Abort()                                                 { panic("stub") }

type Data struct {
	Value wire.Value
}

func (d Data) Release()     { panic("stub") }
func (d Data) Pinned() bool { panic("stub") }

func (c *Client) Get(ctx context.Context, hs ...*Handle) ([]Data, error) { panic("stub") }
func (c *Client) Get1(ctx context.Context, h *Handle) (Data, error)      { panic("stub") }
func (c *Client) Wait(ctx context.Context, hs []*Handle, n int) (ready, rest []int, err error) {
	panic("stub")
}
func (c *Client) Next(ctx context.Context, task ids.TaskID, i uint32) (*Handle, bool, error) {
	panic("stub")
}
func (c *Client) Cancel(task ids.TaskID, force, recursive bool) error { panic("stub") }
func (c *Client) KillActor(actor ids.ActorID, restart bool) error     { panic("stub") }
func (c *Client) Request(ctx context.Context, method string, body []byte) ([]byte, error) {
	panic("stub")
}
func (c *Client) Bind(id ids.ObjectID) (*Handle, error) { panic("stub") }
