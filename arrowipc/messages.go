package arrowipc

import (
	"encoding/binary"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"mobula/internal/errs"
)

// messages gives the messages of a stream that lies in memory, their bodies as parts of it: Arrow's own
// reader of streams copies each. It implements ipc.MessageReader.
type messages struct{ rest []byte }

const continuation = 0xffffffff // before the length of each message

// Message gives the next message; io.EOF after the last.
func (m *messages) Message() (*ipc.Message, error) {
	head, err := m.take(8, "the length of a message")
	if err != nil {
		return nil, err
	}
	if mark := binary.LittleEndian.Uint32(head); mark != continuation {
		return nil, errs.New(errs.CodeNotDecodable, "an Arrow stream has %#x where a message begins, want %#x", mark, uint32(continuation))
	}
	n := binary.LittleEndian.Uint32(head[4:])
	if n == 0 {
		return nil, io.EOF
	}
	meta, err := m.take(uint64(n), "a message's metadata")
	if err != nil {
		return nil, err
	}
	header := memory.NewBufferBytes(meta)
	size := ipc.NewMessage(header, memory.NewBufferBytes(nil)).BodyLen()
	if size < 0 {
		return nil, errs.New(errs.CodeNotDecodable, "an Arrow message with a body of %d bytes", size)
	}
	body, err := m.take(uint64(size), "a message's body")
	if err != nil {
		return nil, err
	}
	return ipc.NewMessage(header, memory.NewBufferBytes(body)), nil
}

func (m *messages) take(n uint64, what string) ([]byte, error) {
	if n > uint64(len(m.rest)) {
		return nil, errs.New(errs.CodeNotDecodable, "an Arrow stream ends inside %s: %d bytes are left, want %d", what, len(m.rest), n)
	}
	b := m.rest[:n:n]
	m.rest = m.rest[n:]
	return b, nil
}

// Retain does nothing: the memory is not the reader's.
func (m *messages) Retain() {}

// Release does nothing.
func (m *messages) Release() {}
