package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"time"

	"mobula/internal/inbox"
	"mobula/remote/transfer"
)

// WriteTimeout bounds the write of a chunk.
const WriteTimeout = 10 * time.Second

// piece is how much of a chunk is read before its sum goes on, while it is in the processor's cache.
const piece = 128 << 10

// ErrSum says that the bytes of a chunk are not those that were sent.
var ErrSum = errors.New("transfer: the checksum of a chunk is wrong")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// conn is a connection, with a goroutine that reads and one that writes.
type conn struct {
	id   transfer.ConnID
	raw  net.Conn
	sums bool // chunks have checksums
	out  *inbox.Inbox[outgoing]
	ctx  context.Context // ends when it is closed; the cause says why
	end  context.CancelCauseFunc
	once sync.Once
	idle chan struct{} // closed when neither goroutine uses memory any more
}

// outgoing is a frame. After a chunk follows data.
type outgoing struct {
	frame transfer.Frame
	data  []byte
	sum   bool // of data is not known yet
}

func newConn(id transfer.ConnID, raw net.Conn) *conn {
	m, ok := raw.(SameMachine)
	c := &conn{id: id, raw: raw, sums: !ok || !m.SameMachine(), out: inbox.New[outgoing](), idle: make(chan struct{})}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c
}

// close has both goroutines end. The first reason counts.
func (c *conn) close(err error) {
	c.once.Do(func() {
		c.end(err)
		_ = c.raw.SetDeadline(time.Unix(1, 0)) // the connection is given up whether it takes that or not
	})
}

// run is a connection's life.
func (t *Transfer) run(c *conn) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.close(t.write(c))
	}()
	c.close(t.read(c))
	<-written
	close(c.idle)
	t.conns.remove(c)
	t.ref.Deliver(transfer.Closed{Conn: c.id, Err: context.Cause(c.ctx)})
	_ = c.raw.Close() // TLS may want to say goodbye: nobody waits for that
}

// post hands an event over, and waits while the core has too many.
func (t *Transfer) post(c *conn, ev transfer.Event) error { return t.ref.Send(c.ctx, ev) }

// write writes what there is to write, until the connection ends.
func (t *Transfer) write(c *conn) error {
	var buf []byte
	for {
		select {
		case <-c.out.Ready():
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
		buf = buf[:0]
		for _, o := range c.out.Take() {
			chunk, ok := o.frame.(transfer.Chunk)
			if !ok {
				buf = transfer.Append(buf, o.frame)
				continue
			}
			if o.sum && c.sums {
				chunk.Sum = crc32.Checksum(o.data, castagnoli)
			}
			if err := c.flush(transfer.Append(buf, chunk), o.data); err != nil {
				return err
			}
			buf = buf[:0]
			if err := t.post(c, transfer.ChunkWritten{Conn: c.id}); err != nil {
				return err
			}
		}
		if len(buf) > 0 {
			if err := c.flush(buf, nil); err != nil {
				return err
			}
		}
	}
}

func (c *conn) flush(frames, data []byte) error {
	if err := c.raw.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil {
		return err
	}
	if c.ctx.Err() != nil { // its deadline is not to be put off
		return context.Cause(c.ctx)
	}
	bufs := net.Buffers{frames}
	if len(data) > 0 {
		bufs = append(bufs, data)
	}
	_, err := bufs.WriteTo(c.raw)
	return err
}

// read takes what comes, until the connection ends.
func (t *Transfer) read(c *conn) (err error) {
	var cold behind
	defer func() { err = cmp.Or(cold.wait(), err) }()
	buf := make([]byte, transfer.HeadSize+transfer.MaxBody)
	for {
		if _, err := io.ReadFull(c.raw, buf[:transfer.HeadSize]); err != nil {
			return err
		}
		head, err := transfer.DecodeHead(buf)
		if err != nil {
			return err
		}
		body := buf[transfer.HeadSize:][:head.Body]
		if _, err := io.ReadFull(c.raw, body); err != nil {
			return err
		}
		f, err := head.Decode(body)
		if err != nil {
			return err
		}
		if chunk, ok := f.(transfer.Chunk); ok {
			err = t.readChunk(c, &cold, chunk)
		} else if err = cold.wait(); err == nil {
			err = t.post(c, transfer.Got{Conn: c.id, Frame: f})
		}
		if err != nil {
			return err
		}
	}
}

// readChunk reads a chunk to where it belongs, or has it put there.
func (t *Transfer) readChunk(c *conn, cold *behind, chunk transfer.Chunk) error {
	room := t.memory.place(c.id, chunk)
	if room == nil {
		return fmt.Errorf("%w: nobody expects %d bytes at %d", transfer.ErrProtocol, chunk.Size, chunk.Offset)
	}
	var dst []byte
	if room.Cold() {
		dst = cold.buffer()[:chunk.Size]
	} else {
		dst = room.Expect(int(chunk.Offset), int(chunk.Offset)+chunk.Size)
	}
	sum, heard := uint32(0), time.Now()
	for rest := dst; len(rest) > 0; {
		part := rest
		if c.sums {
			part = rest[:min(len(rest), piece)]
		}
		n, err := c.raw.Read(part)
		if c.sums {
			sum = crc32.Update(sum, castagnoli, part[:n])
		}
		if rest = rest[n:]; err != nil && len(rest) > 0 {
			return err
		}
		if now := time.Now(); now.Sub(heard) > t.o.Config.Alive {
			if heard = now; t.post(c, transfer.Heard{Conn: c.id}) != nil {
				return context.Cause(c.ctx)
			}
		}
	}
	if c.sums && sum != chunk.Sum {
		return fmt.Errorf("%w: at %d", ErrSum, chunk.Offset)
	}
	if err := cold.wait(); err != nil {
		return err
	}
	read := transfer.ChunkRead{Conn: c.id, Chunk: chunk, Unsummed: !c.sums}
	if !room.Cold() {
		return t.post(c, read)
	}
	cold.begin(func() error {
		if err := room.Write(int(chunk.Offset), dst); err != nil {
			return errors.Join(err, t.post(c, transfer.NoMemory{Token: chunk.Token, Err: err}))
		}
		return t.post(c, read)
	})
	return nil
}
