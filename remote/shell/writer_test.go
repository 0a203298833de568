package shell

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// An acknowledgement does not wait for messages, nor does it come before the connection is in use. A large payload is whole.
func TestOrderOfFrames(t *testing.T) {
	var out recorded
	l := &link{conn: &out}
	large := bytes.Repeat([]byte("x"), 2*spliceFrom)
	w := batchWriter{link: l, buf: make([]byte, 0, writeBuffer), ack: 7, acks: true}
	if err := w.batch([]frame{{kind: kindHello, body: []byte("h")}, {kind: kindUse}, {kind: kindMessage, number: 1, body: []byte("a")}, {kind: kindMessage, number: 2, body: large}}); err != nil {
		t.Fatal(err)
	}
	got, err := cut(newDecoder(1<<20), out.b.Bytes(), 1<<20)
	if err != io.EOF || len(got) != 5 {
		t.Fatalf("%d frames, %v", len(got), err)
	}
	for i, kind := range []byte{kindHello, kindUse, kindAck, kindMessage, kindMessage} {
		if got[i].kind != kind {
			t.Errorf("frame %d is of kind %d, want %d", i, got[i].kind, kind)
		}
	}
	if got[2].number != 7 || !bytes.Equal(got[4].body, large) || out.writes != 2 {
		t.Errorf("number %d, %d bytes, %d writes", got[2].number, len(got[4].body), out.writes)
	}
}

// What a TLS connection has no room for at once is finished later.
func TestWriteNowDoesNotWait(t *testing.T) {
	server, client := configs(1)
	m := serve(t, server)
	a, err := m.Register(ALPN)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := NewTCP(a, client, net.Dialer{}, nil).Dial(t.Context(), m.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	other, err := a.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s := conn.(*secured)
	if err := s.below.Conn.(*net.TCPConn).SetWriteBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	var sent []byte
	for done := true; done; {
		b := bytes.Repeat([]byte{byte(len(sent) / 4096)}, 4096)
		if done, err = s.WriteNow(b); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, b...)
	}
	finished := make(chan error, 1)
	go func() { finished <- s.Finish() }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(other, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("what came is not what was written: %v", err)
	}
	if err := <-finished; err != nil {
		t.Error(err)
	}
}

// recorded is a connection that keeps what is written.
type recorded struct {
	Conn
	b      bytes.Buffer
	writes int
}

func (r *recorded) Write(b []byte) (int, error) {
	r.writes++
	return r.b.Write(b)
}
