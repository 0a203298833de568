package conn

import (
	"errors"
	"time"

	"mobula/wire"
)

// A transport is one end of what a connection is made of: bytes in order either way, and descriptors that go with
// them. Its kinds are the Unix socket (socket) and the pair in memory (pipe); what a connection promises is tested
// of each. One goroutine at a time writes, and one reads; the others may be called at any time.
type transport interface {
	// write writes the beginning of parts, as far as there is room, and returns how many bytes that was. It never
	// waits. The file of a part goes with its first byte; it stays the caller's to close. unix.EPIPE or
	// unix.ECONNRESET: the other side has closed.
	write(parts []wire.Part) (int, error)

	// awaitRoom waits until there may be room to write, or the transport is closed, for at most d.
	awaitRoom(d time.Duration)

	// read waits for bytes, puts them and the files that came with them into r, and returns how many they were. 0: the
	// other side has closed. With soon it does not wait for long, and says errNothing. While it waits r holds no buffer.
	read(r *wire.FrameReader, soon bool) (int, error)

	// setReadDeadline has reads fail with os.ErrDeadlineExceeded from then on; the zero time: never.
	setReadDeadline(t time.Time) error

	// endReading has reads find the end behind what has come, whoever holds the other side open.
	endReading()

	// heat tells whether reads wait in the kernel. Of a kind whose never do it stays cold.
	heat() *hot

	// Close ends every wait. What was written before can still be read by the other side.
	Close() error
}

// errNothing ends a read that was not to wait for long.
var errNothing = errors.New("nothing has come")
