package link

import (
	"context"
	"errors"
	"os"

	"mobula/objectstore/segment"
	"mobula/wire"
	"mobula/wire/conn"
)

// Link is a joined connection.
type Link struct {
	Conn    *conn.Conn
	Welcome *wire.Welcome
	Memory  *segment.Mapping
}

// Dial joins the node whose socket is at path.
func Dial(ctx context.Context, path string, h wire.Hello) (*Link, error) {
	h.PID = int32(os.Getpid())
	c, welcome, file, err := conn.Dial(ctx, path, h, conn.Config{})
	if err != nil {
		return nil, err
	}
	l := &Link{Conn: c, Welcome: welcome}
	if file == nil {
		return l, nil // a tool does not need the segment
	}
	l.Memory, err = segment.OpenMapping(file, welcome.SegmentSize)
	err = errors.Join(err, file.Close())
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return l, nil
}

// Close ends the connection, see Leave, and unmaps the segment.
func (l *Link) Close() error {
	err := l.Leave()
	if l.Memory != nil {
		err = errors.Join(err, l.Memory.Close())
	}
	return err
}

// Leave ends the connection after it has written everything sent before. It is not an error if the node has gone
// meanwhile. The segment stays mapped.
func (l *Link) Leave() error {
	if err := l.Conn.Close(); !l.Conn.Gone() {
		return err
	}
	return nil
}
