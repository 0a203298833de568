package shell

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/remote/transfer"
)

// holder is a node of a test that speaks the protocol by hand. talk has one connection, until that ends; nil: it is left open until the test ends.
func holder(t *testing.T, n *network, home ids.Home, talk func(net.Conn)) {
	tr := n.node(t, home)
	ended := make(chan struct{})
	if talk == nil {
		talk = func(net.Conn) { <-t.Context().Done() }
	}
	go func() {
		defer close(ended)
		for {
			c, _, err := tr.Accept()
			if err != nil {
				return
			}
			talk(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = tr.Close()
		n.cut()
		<-ended
	})
}

// readFrame reads a frame; nil: the connection has ended.
func readFrame(c net.Conn) transfer.Frame {
	var b [transfer.HeadSize + transfer.MaxBody]byte
	if _, err := io.ReadFull(c, b[:transfer.HeadSize]); err != nil {
		return nil
	}
	h, err := transfer.DecodeHead(b[:])
	if err != nil {
		return nil
	}
	body := b[transfer.HeadSize:][:h.Body]
	if _, err := io.ReadFull(c, body); err != nil {
		return nil
	}
	f, _ := h.Decode(body)
	return f
}

// sendChunk sends the chunk of an object at an offset, with what is to be added to its sum.
func sendChunk(c net.Conn, token uint64, b []byte, offset int64, wrong uint32) {
	data := b[offset:min(offset+transfer.ChunkSize, int64(len(b)))]
	head := transfer.Append(nil, transfer.Chunk{Token: token, Offset: offset, Size: len(data), Sum: crc32.Checksum(data, castagnoli) + wrong})
	_, _ = c.Write(append(head, data...)) // the other node may have closed the connection
}

// halfOf sends the first half of something.
func halfOf(c net.Conn, b []byte) {
	_, _ = c.Write(b[:len(b)/2]) // the other node may have closed the connection
}

// drain reads what the other node says until it closes the connection.
func drain(c net.Conn) {
	_, _ = io.Copy(io.Discard, c) // the end is all that matters
}

// Whatever a holder does, the object comes from another one, and only what was right is kept.
func TestABadHolder(t *testing.T) {
	want := pattern(1, 8*mib)
	for _, c := range []struct {
		name string
		talk func(net.Conn)
	}{
		{"accepts and never answers", func(c net.Conn) { drain(c) }},
		{"reads nothing", nil},
		{"falls silent in the middle", func(c net.Conn) {
			if p, ok := readFrame(c).(transfer.Pull); ok {
				sendChunk(c, p.Token, want, p.Offset, 0)
				drain(c)
			}
		}},
		{"falls silent in the middle of a chunk", func(c net.Conn) {
			if p, ok := readFrame(c).(transfer.Pull); ok {
				_, _ = c.Write(append(transfer.Append(nil, transfer.Chunk{Token: p.Token, Size: transfer.ChunkSize}), want[:mib/2]...))
				drain(c)
			}
		}},
		{"sends wrong bytes", func(c net.Conn) {
			if p, ok := readFrame(c).(transfer.Pull); ok {
				sendChunk(c, p.Token, want, p.Offset, 1)
				drain(c)
			}
		}},
		{"sends what it was not asked for", func(c net.Conn) {
			if p, ok := readFrame(c).(transfer.Pull); ok {
				sendChunk(c, p.Token, want, p.Offset+2*mib, 0)
				drain(c)
			}
		}},
		{"sends under another token", func(c net.Conn) {
			if p, ok := readFrame(c).(transfer.Pull); ok {
				sendChunk(c, p.Token+1, want, p.Offset, 0)
				drain(c)
			}
		}},
		{"refuses what was not asked", func(c net.Conn) {
			if p, ok := readFrame(c).(transfer.Pull); ok {
				_, _ = c.Write(transfer.Append(nil, transfer.Refused{Token: p.Token + 1, Reason: transfer.Missing}))
				drain(c)
			}
		}},
		{"pulls on the wrong side", func(c net.Conn) {
			if p, ok := readFrame(c).(transfer.Pull); ok {
				_, _ = c.Write(transfer.Append(nil, p))
				drain(c)
			}
		}},
		{"speaks another protocol", func(c net.Conn) {
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			drain(c)
		}},
		{"breaks off in a head", func(c net.Conn) { halfOf(c, transfer.Append(nil, transfer.Alive{})) }},
		{"breaks off in a frame", func(c net.Conn) {
			if p, ok := readFrame(c).(transfer.Pull); ok {
				halfOf(c, transfer.Append(nil, transfer.Refused{Token: p.Token, Reason: transfer.Busy, Others: []ids.Home{1}}))
			}
		}},
		{"breaks off in a chunk", func(c net.Conn) {
			if p, ok := readFrame(c).(transfer.Pull); ok {
				halfOf(c, append(transfer.Append(nil, transfer.Chunk{Token: p.Token, Size: transfer.ChunkSize}), want[:mib]...))
			}
		}},
		{"closes at once", func(net.Conn) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			networks(t, func(t *testing.T, n *network) {
				holder(t, n, 9, c.talk)
				all := newNodes(t, n, 2, func(c *transfer.Config) { c.Silence, c.Alive = 300*time.Millisecond, 100*time.Millisecond })
				all[0].put(object(1), want)
				dst := make([]byte, len(want))
				if err := testkit.Receive(t, "an answer", all[1].get(object(1), dst, 9, 1)); err != nil || !bytes.Equal(dst, want) {
					t.Fatal(err)
				}
			})
		})
	}
}

// A node that is alone with such a holder is told why it gets nothing.
func TestAHolderThatSendsWrongBytes(t *testing.T) {
	n := newNetwork(t, "pipes")
	holder(t, n, 9, func(c net.Conn) {
		if p, ok := readFrame(c).(transfer.Pull); ok {
			sendChunk(c, p.Token, pattern(1, mib), p.Offset, 1)
			drain(c)
		}
	})
	err := testkit.Receive(t, "an answer", newNodes(t, n, 1)[0].get(object(1), make([]byte, mib), 9))
	if !errors.Is(err, ErrSum) || !errors.Is(err, transfer.ErrNoHolder) {
		t.Error(err)
	}
}

// Whatever a receiver does, its connection is closed, nothing stays pinned for it, and others are served.
func TestABadReceiver(t *testing.T) {
	want := pattern(1, 3*mib)
	pull := transfer.Pull{Token: 1, Object: transfer.Object{ID: object(1)}, Size: int64(len(want)), Limit: int64(len(want))}
	twice := transfer.Append(transfer.Append(nil, pull), pull)
	for name, says := range map[string][]byte{
		"another protocol":            []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"an unknown kind":             {200, 0, 0, 0, 0, 0, 0, 0},
		"a body that is too long":     {1, 0, 0, 0, 255, 255, 255, 255},
		"a pull beyond the end":       transfer.Append(nil, transfer.Pull{Token: 1, Object: pull.Object, Size: mib, Offset: 2 * mib, Limit: 3 * mib}),
		"a pull in the middle":        transfer.Append(nil, transfer.Pull{Token: 1, Object: pull.Object, Size: mib, Offset: 7, Limit: mib}),
		"the same pull twice":         twice,
		"what a holder says":          transfer.Append(nil, transfer.Refused{Token: 1, Reason: transfer.Missing}),
		"a chunk":                     append(transfer.Append(nil, transfer.Chunk{Token: 1, Size: 10}), make([]byte, 10)...),
		"half a frame, and the end":   twice[:len(twice)/4],
		"a pull, and half of another": twice[:len(twice)-9],
	} {
		t.Run(name, func(t *testing.T) {
			networks(t, func(t *testing.T, n *network) {
				bad := n.node(t, 9)
				defer bad.Close()
				all := newNodes(t, n, 2)
				all[0].put(object(1), want)
				all[0].hold = make(chan struct{}) // a pull goes on until then
				c, err := bad.Dial(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, _ = c.Write(says) // the other node may have closed the connection
				if strings.Contains(name, "half") {
					_ = c.Close()
				} else {
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						drain(c)
					}()
					testkit.Receive(t, "the end of the connection", ended)
				}
				close(all[0].hold)
				dst := make([]byte, len(want))
				if err := testkit.Receive(t, "an answer", all[1].get(object(1), dst, 1)); err != nil || !bytes.Equal(dst, want) {
					t.Fatal(err)
				}
				testkit.Eventually(t, "nothing is pinned", func() bool {
					all[0].mu.Lock()
					defer all[0].mu.Unlock()
					return len(all[0].pins) == 0
				})
			})
		})
	}
}
