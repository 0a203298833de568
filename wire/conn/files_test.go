package conn

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/testkit"
	"mobula/wire"
)

func tempFile(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func testFilesTravel(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	before := openFiles(t)
	const n = 20
	go func() {
		for i := range n {
			text := string(rune('a' + i))
			path := filepath.Join(os.TempDir(), "unused")
			f := tempFile(t, text)
			err := a.SendFD(&wire.MapFile{File: uint32(i), Path: path}, f)
			f.Close() // ours is no longer needed
			if err == nil {
				err = a.Send(putValue(i*20_000, byte(i)), &wire.Drain{})
			}
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
	}()
	seen := 0
	for _, m := range recvN(t, b, 3*n) {
		m, ok := m.(*wire.MapFile)
		if !ok {
			continue
		}
		text, err := io.ReadAll(m.Opened)
		if err != nil || string(text) != string(rune('a'+m.File)) || m.File != uint32(seen) {
			t.Fatalf("file %d of %d holds %q, %v", m.File, seen, text, err)
		}
		flags, err := unix.FcntlInt(m.Opened.Fd(), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("the descriptor would be inherited by child processes: flags %#x, %v", flags, err)
		}
		m.Opened.Close()
		seen++
	}
	if seen != n {
		t.Fatalf("%d files of %d", seen, n)
	}
	testkit.Eventually(t, "our copies of the descriptors are closed", func() bool { return openFiles(t) <= before })
}

func testOnlyMessagesWithAFileTakeOne(t *testing.T, pair connected) {
	a, _ := pair(t, Config{})
	f := tempFile(t, "x")
	wantErr(t, a.SendFD(&wire.Drain{}, f), errs.ErrInvalid, "Drain")
	f.Close()
	wantErr(t, a.SendFD(&wire.MapFile{}, f), errs.ErrInvalid, "closed")
}

func testPendingFilesAreClosed(t *testing.T, pair connected) {
	before := openFiles(t)
	a, _ := pair(t, Config{})
	fillUp(t, a)
	f := tempFile(t, "x")
	for range 5 {
		if err := a.SendFD(&wire.MapFile{}, f); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	a.Fail(errs.New(errs.CodeShutdown, "test"))
	testkit.Eventually(t, "descriptors are closed", func() bool { return openFiles(t) <= before+2 }) // a socket's other end and its set
}

// sendRaw writes data with n descriptors, as no honest peer would.
func sendRaw(t *testing.T, c *Conn, data []byte, n int) {
	t.Helper()
	f := tempFile(t, "x")
	fds := make([]int, n)
	for i := range fds {
		fds[i] = int(f.Fd())
	}
	if err := unix.Sendmsg(c.t.(*socket).fd, data, unix.UnixRights(fds...), nil, 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// flagFile is the flag in a frame's header that announces a descriptor.
const flagFile = 1

func TestUninvitedDescriptorsAreClosed(t *testing.T) {
	mapFile := rawFrame(t, &wire.MapFile{File: 1})
	mapFile[3] |= flagFile
	drain := rawFrame(t, &wire.Drain{})
	drain[3] |= flagFile
	for _, c := range []struct {
		name  string
		data  []byte
		n     int
		to    int // 0: the node's side, which takes none
		words string
		fine  bool
	}{
		{"to the node", mapFile, 1, 0, "none is accepted", false},
		{"too many for the buffer", mapFile, 7, 1, "lost on the way", false},
		{"too many for the protocol", mapFile, 2, 1, "2 file descriptors", false},
		{"unannounced, then the frame", mapFile[:4], 2, 1, "2 file descriptors", false},
		{"with a message that has no use for it", drain, 1, 1, "", true},
		{"in a frame that is malformed", append(drain[:len(drain)-1:len(drain)-1], 9), 1, 1, "announces 9", false},
		{"in a frame that never ends", mapFile[:len(mapFile)-1], 1, 1, "truncated", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			node, client := socketPair(t, Config{})
			from, to := client, node
			if c.to == 1 {
				from, to = node, client
			}
			before := openFiles(t)
			sendRaw(t, from, c.data, c.n)
			if err := unix.Shutdown(from.t.(*socket).fd, unix.SHUT_WR); err != nil {
				t.Fatal(err)
			}
			msgs, err := to.Recv()
			if c.fine {
				if err != nil || len(msgs) != 1 {
					t.Fatalf("%v, %v", msgs, err)
				}
			} else {
				wantErr(t, err, errs.ErrProtocol, c.words)
			}
			if after := openFiles(t); after != before {
				t.Errorf("%d descriptors were open before, %d after", before, after)
			}
		})
	}
}
