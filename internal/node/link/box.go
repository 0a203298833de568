package link

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/outlet"
	"mobula/raylet/internode"
	"mobula/remote"
	"mobula/wire"
)

// Sender is the transport (remote/shell.Hub). Both calls give the payload up.
type Sender interface {
	Send(ctx context.Context, to remote.Life, payload []byte) error // waits for room
	TrySend(to remote.Life, payload []byte) error                   // errs.ErrBacklog: there is none
}

// Config is what a Box is told.
type Config struct {
	Home    ids.Home
	Sender  Sender
	Life    context.Context                  // ends when nothing is sent any more
	Agreed  func() uint32                    // the version of package internode that both nodes speak; 0: none was agreed yet. nil: there is none
	Dropped func(m internode.Msg, err error) // is called with what could not be sent
}

// Box is what is said to one other node, in order.
type Box struct {
	cfg   Config
	enc   internode.Encoder // of who sends
	buf   []byte            // of who sends: payloads are encoded here
	epoch atomic.Uint64     // of the life of the node that it is for; 0: none was met yet

	mu      sync.Mutex
	pending []item        // guarded by mu
	spare   []item        // guarded by mu
	merged  int           // guarded by mu: messages in the last envelope
	busy    bool          // guarded by mu: somebody sends
	room    chan struct{} // guarded by mu: closed when the transport has room again; nil: it has
}

// Meet says which life of the node this is for: nothing that is pushed goes to a later one.
func (b *Box) Meet(epoch uint64) { b.epoch.CompareAndSwap(0, epoch) }

func (b *Box) to() remote.Life { return remote.Life{Home: b.cfg.Home, Epoch: b.epoch.Load()} }

// item is a message, or what is called in its turn.
type item struct {
	msg     internode.Msg
	receipt outlet.Receipt
}

// New makes an empty Box.
func New(cfg Config) *Box { return &Box{cfg: cfg} }

// Push queues a message.
func (b *Box) Push(m internode.Msg) {
	b.mu.Lock()
	b.pending = append(b.pending, item{msg: m})
	b.merged = together
	b.mu.Unlock()
}

// together is how many messages for clients of a job go in one envelope at most.
const together = 256

// pushClient queues a message for a client; what follows one for the same job goes in the same envelope.
func (b *Box) pushClient(job ids.JobID, client ids.ClientID, m wire.Msg) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.pending); n > 0 {
		if last, ok := b.pending[n-1].msg.(*internode.ToClients); ok && last.Job == job && b.merged < together {
			b.merged++
			if k := len(last.Items); last.Items[k-1].Client == client {
				last.Items[k-1].Msgs = append(last.Items[k-1].Msgs, m)
			} else {
				last.Items = append(last.Items, internode.ClientMsgs{Client: client, Msgs: []wire.Msg{m}})
			}
			return
		}
	}
	b.merged = 1
	b.pending = append(b.pending, item{msg: &internode.ToClients{Job: job, Items: []internode.ClientMsgs{{Client: client, Msgs: []wire.Msg{m}}}}})
}

// Flush lets what is queued go.
func (b *Box) Flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy {
		return
	}
	b.busy = true
	for len(b.pending) > 0 {
		batch := b.pending
		b.pending = b.spare[:0]
		b.mu.Unlock()
		rest, payload := b.send(batch)
		if payload != nil {
			b.mu.Lock()
			b.spare, b.room = nil, make(chan struct{})
			go b.sendRest(rest, payload) // it sends now
			return
		}
		clear(batch)
		b.mu.Lock()
		b.spare = batch
	}
	b.busy = false
}

// enough is how many bytes make a payload.
const enough = 64 << 10

// send hands a batch over. If there is no room it gives what is left, behind the payload that was refused.
func (b *Box) send(batch []item) (rest []item, refused []byte) {
	for len(batch) > 0 {
		payload, n := b.payload(batch)
		if payload != nil {
			if err := b.cfg.Sender.TrySend(b.to(), payload); errors.Is(err, errs.ErrBacklog) {
				return batch[n:], payload
			}
		}
		batch = batch[n:]
	}
	return nil, nil
}

// keep is the largest buffer that is kept for the next payload.
const keep = 2 * enough

// payload encodes the first messages of a batch, and calls the receipts before the first of them. It gives how many items it took.
func (b *Box) payload(batch []item) (payload []byte, n int) {
	out, n := b.encoded(batch, b.buf[:0])
	switch {
	case len(out) == 0:
		return nil, n
	case cap(out) > keep:
		return out, n // it is given away as it is
	}
	b.buf = out
	return bytes.Clone(out), n
}

// encoded is payload, in a buffer.
func (b *Box) encoded(batch []item, payload []byte) (_ []byte, n int) {
	if b.cfg.Agreed != nil {
		b.enc.Agreed = b.cfg.Agreed()
	}
	for n < len(batch) && len(payload) < enough {
		if r := batch[n].receipt; r != nil {
			if len(payload) > 0 {
				break // what is before it is not on its way
			}
			r()
			n++
			continue
		}
		out, err := b.enc.Append(payload, batch[n].msg)
		if err != nil && len(payload) > 0 {
			break // it may fit alone
		}
		if err != nil {
			b.cfg.Dropped(batch[n].msg, err)
		}
		payload = out
		n++
	}
	return payload, n
}

// sendRest sends what the transport had no room for, and gives the role back. It ends with the Box's life.
func (b *Box) sendRest(rest []item, payload []byte) {
	for b.cfg.Sender.Send(b.cfg.Life, b.to(), payload) == nil { // else nothing is sent any more
		if rest, payload = b.send(rest); payload == nil {
			break
		}
	}
	b.mu.Lock()
	b.busy = false
	close(b.room)
	b.room = nil
	b.mu.Unlock()
	b.Flush()
}

// Full tells whether the transport has no room: what is pushed now waits here, in memory. What can be left out is not to be pushed.
func (b *Box) Full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.room != nil
}

// Await returns when the transport has room, or with the cause of ctx.
func (b *Box) Await(ctx context.Context) error {
	b.mu.Lock()
	room := b.room
	b.mu.Unlock()
	if room == nil {
		return nil
	}
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
