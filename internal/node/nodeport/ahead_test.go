package nodeport

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"mobula/internal/testkit"
)

// pieces gives a stream in pieces, at most one a read, and then an error.
type pieces struct {
	net.Conn
	left  [][]byte
	reads int
	err   error
}

func (p *pieces) Read(b []byte) (int, error) {
	p.reads++
	if len(p.left) == 0 {
		return 0, p.err
	}
	n := copy(b, p.left[0])
	if p.left[0] = p.left[0][n:]; len(p.left[0]) == 0 {
		p.left = p.left[1:]
	}
	return n, nil
}

// What is read ahead is the stream as it comes, however it is cut, and its end.
func TestAheadGivesTheStream(t *testing.T) {
	gone := errors.New("gone")
	for _, seed := range testkit.Seeds(t, 200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := &pieces{err: gone}
		var want []byte
		for range rng.IntN(8) {
			piece := make([]byte, 1+rng.IntN(3*aheadSize))
			for i := range piece {
				piece[i] = byte(rng.Uint32())
			}
			p.left, want = append(p.left, piece), append(want, piece...)
		}
		c := &ahead{Conn: p}
		var got []byte
		for {
			b := make([]byte, rng.IntN(40<<10))
			n, err := c.Read(b)
			if got = append(got, b[:n]...); errors.Is(err, gone) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %d bytes of %d, or others", seed, len(got), len(want))
		}
		if c.buf != nil {
			t.Fatalf("seed %d: a connection that is over holds a buffer", seed)
		}
	}
}

// While much comes the system is asked seldom; a connection on which a little came holds no buffer while it waits for more.
func TestAheadReadsMuchAtOnce(t *testing.T) {
	p := &pieces{err: io.EOF, left: [][]byte{make([]byte, 4<<20)}}
	c := &ahead{Conn: p}
	b := make([]byte, 16<<10)
	for read := 0; read < 4<<20; {
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		read += n
	}
	if p.reads > 20 {
		t.Errorf("%d reads of 4 MiB", p.reads)
	}
	p.left = [][]byte{{1, 2, 3}, {4, 5, 6}}
	for range 2 {
		if n, err := c.Read(b); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		if c.buf != nil || c.more {
			t.Error("it would hold a buffer while it waits")
		}
	}
}
