package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/lend"
	"mobula/internal/testkit"
	"mobula/wire"
)

func socketPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "node", "s")
}

// accept is a handshake that welcomes everybody and runs f with the connection.
func accept(f func(c *Conn)) Handshake {
	return func(h *wire.Hello, _ Peer) (*Session, error) {
		return &Session{Welcome: &wire.Welcome{Node: "n1", Job: h.Job + 1}, Run: func(c *Conn, err error) {
			if err == nil && f != nil {
				f(c)
			}
		}}, nil
	}
}

// listen starts a listener that ends with the test.
func listen(t testing.TB, cfg Config, decide Handshake) *Listener {
	t.Helper()
	l, err := Listen(socketPath(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve(decide) }()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("closing the listener: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve ended with %v", err)
		}
		if _, err := os.Stat(l.Path()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	return l
}

func dial(t testing.TB, l *Listener, h wire.Hello) (*Conn, *wire.Welcome, *os.File, error) {
	t.Helper()
	return Dial(t.Context(), l.Path(), h, Config{})
}

func TestHandshakeHandsOverSegmentAndStream(t *testing.T) {
	segment := tempFile(t, "the segment")
	echoed := make(chan Peer, 1)
	l := listen(t, Config{}, func(h *wire.Hello, p Peer) (*Session, error) {
		if h.Role != wire.RoleDriver || h.Functions[0].Name != "f" || h.Version != wire.Version {
			return nil, fmt.Errorf("the hello is %+v", h)
		}
		echoed <- p
		return &Session{Welcome: &wire.Welcome{Client: 7, Slots: 2}, Segment: segment, Run: func(c *Conn, err error) {
			if err != nil {
				t.Errorf("the welcome was not sent: %v", err)
				return
			}
			if err := c.Serve(new(lend.Lender), func(batch []wire.Msg) error { return c.TrySend(batch...) }); err != io.EOF {
				t.Errorf("the session ended with %v", err)
			}
		}}, nil
	})
	c, w, f, err := dial(t, l, wire.Hello{Role: wire.RoleDriver, PID: int32(os.Getpid()), Functions: []wire.FuncInfo{{Name: "f", Signature: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "the segment" {
		t.Errorf("the segment holds %q, %v", text, err)
	}
	if w.Client != 7 || w.Slots != 2 || w.Version != wire.Version || c.Version() != wire.Version {
		t.Errorf("welcome %+v, version %d", w, c.Version())
	}
	if p := <-echoed; p.PID != int32(os.Getpid()) || p.UID != uint32(os.Geteuid()) || c.Peer() != p {
		t.Errorf("the peers see each other as %+v and %+v", p, c.Peer())
	}
	if err := c.Send(&wire.Credit{Bytes: 3}); err != nil {
		t.Fatal(err)
	}
	if m := recvN(t, c, 1)[0].(*wire.Credit); m.Bytes != 3 {
		t.Errorf("echoed %+v", m)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the node forgets the connection", func() bool { return l.Conns() == 0 })
}

func TestSocketIsTheUsersAlone(t *testing.T) {
	l := listen(t, Config{}, accept(nil))
	for path, want := range map[string]os.FileMode{l.Path(): 0o600, filepath.Dir(l.Path()): 0o700, l.Path() + ".lock": 0o600} {
		fi, err := os.Stat(path)
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v), want %v", path, fi.Mode(), err, want)
		}
	}
}

func TestBadPlacesForASocket(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	taken := filepath.Join(t.TempDir(), "node")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(taken+"/s", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		kind  error
		words []string
	}{
		{filepath.Join(open, "s"), errs.ErrPermission, []string{open, "0755", "chmod 700"}},
		{filepath.Join(file, "s"), errs.ErrPermission, []string{file}},
		{taken + "/s", errs.ErrPermission, []string{"in the way"}},
		{t.TempDir() + "/n/" + strings.Repeat("x", 120), errs.ErrInvalid, []string{"120 bytes", "82"}},
	} {
		_, err := Listen(c.path, Config{})
		wantErr(t, err, c.kind, c.words...)
	}
	_, _, _, err := Dial(t.Context(), "/tmp/"+strings.Repeat("x", 120), wire.Hello{}, Config{})
	wantErr(t, err, errs.ErrInvalid, "120 bytes")
}

// A directory may be as deep as the file system has it, whatever a socket's address holds.
func TestASocketInADeepDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("x", 100), strings.Repeat("y", 100), "s")
	l, err := Listen(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve(accept(nil)) }()
	c, _, f, err := dial(t, l, wire.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	if f != nil {
		_ = f.Close()
	}
	if _, err := Listen(path, Config{}); !errors.Is(err, errs.ErrNodeRunning) {
		t.Errorf("a second one: %v", err)
	}
	_ = c.Close() // the listener's end is what is looked at
	if err := errors.Join(l.Close(), <-served); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	_, _, _, err = Dial(t.Context(), path, wire.Hello{}, Config{})
	wantErr(t, err, errs.ErrNoNode, path)
}

func TestOfTwoNodesStartedAtOnceOneLives(t *testing.T) {
	for range 20 {
		path := socketPath(t)
		// A leftover of a killed node makes both want to clean up.
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		old.SetUnlinkOnClose(false)
		old.Close()
		var wg sync.WaitGroup
		var got [2]*Listener
		var failed [2]error
		for i := range got {
			wg.Go(func() { got[i], failed[i] = Listen(path, Config{}) })
		}
		wg.Wait()
		winner, loser := 0, 1
		if failed[0] != nil {
			winner, loser = 1, 0
		}
		if failed[winner] != nil {
			t.Fatalf("neither lives: %v; %v", failed[0], failed[1])
		}
		wantErr(t, failed[loser], errs.ErrNodeRunning, path)
		if c, err := net.Dial("unix", path); err != nil {
			t.Fatalf("the one that lives cannot be reached: %v", err)
		} else {
			c.Close()
		}
		if err := got[winner].Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignServerIsNotPushedAside(t *testing.T) {
	path := socketPath(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = Listen(path, Config{})
	wantErr(t, err, errs.ErrNodeRunning, path)
	// A client that takes it for a node is told what is wrong.
	go func() {
		c, err := other.Accept() // the probe of Listen
		if err != nil {
			return
		}
		c.Close()
		if c, err = other.Accept(); err != nil {
			return
		}
		_, _ = io.WriteString(c, "220 mail.example.org ESMTP\r\n")
		c.Close()
	}()
	_, _, _, err = Dial(t.Context(), path, wire.Hello{}, Config{})
	wantErr(t, err, errs.ErrProtocol, "22", "does not speak this protocol")
}

func init() {
	children["node"] = func(path string) error {
		l, err := Listen(path, Config{})
		if err != nil {
			return err
		}
		fmt.Println("ready")
		return l.Serve(accept(nil))
	}
}

// startNode starts a child that listens at path.
func startNode(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, childArg+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // may have been killed before
		_ = cmd.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestLeftoversOfAKilledNodeAreCleaned(t *testing.T) {
	path := socketPath(t)
	cmd := startNode(t, "node", path)
	_, err := Listen(path, Config{})
	wantErr(t, err, errs.ErrNodeRunning, path)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as intended
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the killed node left no socket: %v", err)
	}
	_, _, _, err = Dial(t.Context(), path, wire.Hello{}, Config{})
	wantErr(t, err, errs.ErrNoNode, path, "is gone")
	l, err := Listen(path, Config{})
	if err != nil {
		t.Fatalf("a new node does not start: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDialErrors(t *testing.T) {
	path := socketPath(t)
	_, _, _, err := Dial(t.Context(), path, wire.Hello{}, Config{})
	wantErr(t, err, errs.ErrNoNode, path, "no socket")

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(path), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, _, err = Dial(t.Context(), file, wire.Hello{}, Config{})
	wantErr(t, err, errs.ErrInvalid, file, "no socket", "MOBULA_ADDRESS")
	_, _, _, err = Dial(t.Context(), file+"/node.sock", wire.Hello{}, Config{})
	wantErr(t, err, errs.ErrNoNode, file+"/node.sock", "MOBULA_ADDRESS")
	for address, of := range map[string]error{
		"localhost:6379": errs.ErrInvalid, "tcp://10.0.0.1:6379": errs.ErrInvalid, "mobula://head/x": errs.ErrInvalid, ":6379": errs.ErrInvalid, "[::1]:80": errs.ErrInvalid,
		filepath.Dir(file) + "/a:1": errs.ErrNoNode, // a file may be called so
	} {
		_, _, _, err = Dial(t.Context(), address, wire.Hello{}, Config{})
		wantErr(t, err, of, address, "mobula start", "MOBULA_ADDRESS")
		if said := strings.Contains(err.Error(), "host and port"); said != errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, host := range []string{"10.0.0.1", "head.example.org"} {
		_, _, _, err = Dial(t.Context(), host, wire.Hello{}, Config{})
		wantErr(t, err, errs.ErrNoNode, host+":7710 as a rule", "mobula start")
	}
	_, _, _, err = Dial(t.Context(), filepath.Dir(file)+"/node.sock", wire.Hello{}, Config{})
	wantErr(t, err, errs.ErrNoNode, "no node runs in "+filepath.Dir(file), "mobula start")
	_, _, _, err = Dial(t.Context(), "/no/such/node.sock", wire.Hello{}, Config{})
	wantErr(t, err, errs.ErrNoNode, "no directory /no/such", "mobula start")
	mute, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	_, _, _, err = Dial(t.Context(), path, wire.Hello{}, Config{HandshakeTimeout: 30 * time.Millisecond})
	wantErr(t, err, errs.ErrProtocol, path, "does not answer as a node", "said nothing for 30ms")

	mine := errors.New("mine")
	ctx, cancel := context.WithCancelCause(t.Context())
	accepted := make(chan struct{})
	go func() {
		for range 2 {
			if c, err := mute.Accept(); err == nil {
				defer c.Close()
			}
		}
		close(accepted)
		cancel(mine)
	}()
	_, _, _, err = Dial(ctx, path, wire.Hello{}, Config{})
	if err != mine {
		t.Errorf("Dial with an ended context returned %v", err)
	}
	<-accepted
	_, _, _, err = Dial(ctx, path, wire.Hello{}, Config{})
	if err != mine {
		t.Errorf("Dial with a context that ended before returned %v", err)
	}
}

// answers serves one connection at path with these bytes, and returns what Dial makes of it.
func answers(t *testing.T, data []byte) error {
	t.Helper()
	path := socketPath(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, 1000)); err == nil {
			_, _ = c.Write(data)
		}
	}()
	_, _, _, err = Dial(t.Context(), path, wire.Hello{}, Config{})
	return err
}

func TestDialJudgesTheAnswer(t *testing.T) {
	wantErr(t, answers(t, nil), errs.ErrDisconnected, "without a word")
	wantErr(t, answers(t, rawFrame(t, &wire.Welcome{Version: 99})), errs.ErrVersion, "99")
	wantErr(t, answers(t, rawFrame(t, &wire.Welcome{})), errs.ErrVersion, "version 0")
	wantErr(t, answers(t, rawFrame(t, &wire.Credit{Bytes: 1})), errs.ErrProtocol, "Credit")
	wantErr(t, answers(t, rawFrame(t, &wire.Bye{})), errs.ErrProtocol, "without a reason")
	wantErr(t, answers(t, rawFrame(t, &wire.Bye{Err: errs.New(errs.CodeShutdown, "going down")})), errs.ErrShutdown, "going down")
	wantErr(t, answers(t, []byte{'M', 'b', 1, 0, 0xff, 0xff, 0xff, 0xff}), errs.ErrProtocol, "announces")
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		version, minVersion, want uint32
	}{
		{wire.Version, wire.MinVersion, wire.Version}, {wire.Version + 1, wire.MinVersion, wire.Version}, {wire.Version + 1, wire.Version, wire.Version},
		{wire.MinVersion, wire.MinVersion, wire.MinVersion}, {99, 0, wire.Version}, {wire.Version + 1, wire.Version + 1, 0}, {0, 0, 0},
	} {
		got, err := agree(c.version, c.minVersion)
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("a client of versions %d to %d gets %d, %v", c.minVersion, c.version, got, err)
		}
	}
	l := listen(t, Config{}, accept(nil))
	c, w, _, err := dial(t, l, wire.Hello{Version: wire.Version + 1, MinVersion: wire.Version})
	if err != nil || w.Version != wire.Version || c.Version() != wire.Version {
		t.Fatalf("a client of the next version is welcomed with %+v, %v", w, err)
	}
	c.Close()
	c, w, _, err = dial(t, l, wire.Hello{Version: wire.MinVersion, MinVersion: wire.MinVersion})
	if err != nil || w.Version != wire.MinVersion || c.Version() != wire.MinVersion {
		t.Fatalf("a client of the oldest version is welcomed with %+v, %v", w, err)
	}
	c.Close()
	_, _, _, err = dial(t, l, wire.Hello{Version: wire.Version + 2, MinVersion: wire.Version + 1})
	wantErr(t, err, errs.ErrVersion, fmt.Sprintf("%d to %d", wire.Version+1, wire.Version+2), fmt.Sprintf("%d to %d", wire.MinVersion, wire.Version))
}

func TestRegistryMismatchReachesTheClient(t *testing.T) {
	registry := []wire.FuncInfo{{Name: "math/add", Signature: 1}, {Name: "app/f", Signature: 2}}
	l := listen(t, Config{}, func(h *wire.Hello, p Peer) (*Session, error) {
		if err := wire.CompareFunctions(registry, h.Functions); err != nil {
			return nil, err
		}
		return accept(nil)(h, p)
	})
	c, _, _, err := dial(t, l, wire.Hello{Functions: append(registry, wire.FuncInfo{Name: "one/more", Signature: 1})})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	_, _, _, err = dial(t, l, wire.Hello{Functions: registry[:1]})
	wantErr(t, err, errs.ErrRegistryMismatch, "app/f", "not in the worker")
	_, _, _, err = dial(t, l, wire.Hello{Functions: []wire.FuncInfo{{Name: "app/f", Signature: 2}, {Name: "math/add", Signature: 77}}})
	wantErr(t, err, errs.ErrRegistryMismatch, "math/add", "signature")
}

// rawClient connects without the library.
func rawClient(t testing.TB, l *Listener) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: l.Path(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// bye is the reason in the one frame that the node sends before it closes.
func bye(t testing.TB, c net.Conn) error {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(testkit.Patience())); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(c)
	if err != nil && len(data) == 0 {
		t.Fatal(err)
	}
	msgs, err := received(data)
	if err != nil || len(msgs) != 1 || msgs[0].Kind() != wire.KindBye {
		t.Fatalf("the node sent %v, %v; want Bye", msgs, err)
	}
	return msgs[0].(*wire.Bye).Err
}

func TestSilentClientIsDropped(t *testing.T) {
	l := listen(t, Config{HandshakeTimeout: 30 * time.Millisecond}, accept(nil))
	for _, say := range [][]byte{nil, []byte("Mb"), rawFrame(t, &wire.Hello{Version: 1})[:9]} {
		c := rawClient(t, l)
		if _, err := c.Write(say); err != nil {
			t.Fatal(err)
		}
		wantErr(t, bye(t, c), errs.ErrProtocol, "said nothing for 30ms")
	}
	testkit.Eventually(t, "the node forgets them", func() bool { return l.Conns() == 0 })
}

func TestBadHellosAreRefusedAndTheNodeGoesOn(t *testing.T) {
	l := listen(t, Config{}, accept(nil))
	for _, c := range []struct {
		say  []byte
		word string
	}{
		{rawFrame(t, &wire.Credit{Bytes: 1}), "Credit, not Hello"},
		{[]byte("GET / HTTP/1.1\r\n\r\n"), "GE"},
		{[]byte{'M', 'b', 1, 0, 0xff, 0xff, 0xff, 0xff}, "4294967295"},
		{[]byte{'M', 'b', 1, 0, 1, 0, 64, 0}, "the limit is 4194304"}, // more than a hello may have
		{rawFrame(t, &wire.Hello{}), "versions 0 to 0"},
	} {
		conn := rawClient(t, l)
		if _, err := conn.Write(c.say); err != nil {
			t.Fatal(err)
		}
		wantErr(t, bye(t, conn), errs.ErrProtocol, c.word)
	}
	c, _, _, err := dial(t, l, wire.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestMalformedFrameEndsItsSessionOnly(t *testing.T) {
	ended := make(chan error, 3)
	l := listen(t, Config{}, accept(func(c *Conn) { ended <- c.Serve(new(lend.Lender), func([]wire.Msg) error { return nil }) }))
	honest, _, _, err := dial(t, l, wire.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	defer honest.Close()
	for _, c := range []struct {
		say  []byte
		word string
	}{
		{[]byte{'M', 'b', 1, 0, 0xff, 0xff, 0xff, 0xff}, "4294967295"},
		{rawFrame(t, putValue(300, 1))[:100], "truncated"},
		{append(rawFrame(t, &wire.Drain{}), "garbage, garbage"...), "ga"},
	} {
		bad, _, _, err := dial(t, l, wire.Hello{})
		if err != nil {
			t.Fatal(err)
		}
		if err := bad.writeAll([]wire.Part{{Data: c.say}}, time.Second); err != nil {
			t.Fatal(err)
		}
		bad.t.Close()
		wantErr(t, <-ended, errs.ErrProtocol, c.word, "frame ")
		bad.Fail(io.EOF)
	}
	if err := honest.Send(&wire.Drain{}); err != nil {
		t.Fatalf("another client's connection broke too: %v", err)
	}
	testkit.Eventually(t, "the honest client alone is left", func() bool { return l.Conns() == 1 })
}

func TestCloseEndsEverySession(t *testing.T) {
	var ended sync.WaitGroup
	l, err := Listen(socketPath(t), Config{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(accept(func(c *Conn) {
			ended.Add(1)
			defer ended.Done()
			if _, err := c.Recv(); !errors.Is(err, errs.ErrShutdown) {
				t.Errorf("the session ended with %v", err)
			}
		}))
	}()
	c, _, _, err := dial(t, l, wire.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	silent := rawClient(t, l) // is in its handshake
	testkit.Eventually(t, "both are connected", func() bool { return l.Conns() == 2 })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ended.Wait()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := c.Recv(); err != io.EOF {
		t.Errorf("the client sees %v", err)
	}
	if _, err := io.ReadAll(silent); err != nil {
		t.Errorf("the silent client sees %v", err)
	}
	c.Close()
	if err := l.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestWelcomeThatCannotBeSentIsUndone(t *testing.T) {
	undone := make(chan error, 1)
	l := listen(t, Config{}, func(*wire.Hello, Peer) (*Session, error) {
		return &Session{Welcome: &wire.Welcome{Root: ids.RootTask(1, 1), Token: make([]byte, wire.MaxFrame)}, Run: func(_ *Conn, err error) { undone <- err }}, nil
	})
	_, _, _, err := dial(t, l, wire.Hello{})
	wantErr(t, err, errs.ErrDisconnected)
	wantErr(t, <-undone, errs.ErrInvalid, "Welcome")
}

// Whoever keeps account of the ends knows of one before the other side can, which may come back at once.
func TestAFailureIsToldBeforeTheOtherSideSeesIt(t *testing.T) {
	why := errs.New(errs.CodeDisconnected, "enough")
	here, told := make(chan *Conn, 1), make(chan error, 2)
	l := listen(t, Config{}, func(*wire.Hello, Peer) (*Session, error) {
		return &Session{
			Welcome: &wire.Welcome{Node: "n1", Job: 1},
			Failed: func(err error) {
				if err := (<-here).Send(&wire.Drain{}); err != nil {
					t.Errorf("the other side has seen it: %v", err)
				}
				told <- err
			},
			Run: func(c *Conn, _ error) { c.Fail(why); c.Fail(io.EOF) },
		}, nil
	})
	c, _, _, err := dial(t, l, wire.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	here <- c
	if err := <-told; err != why {
		t.Errorf("told: %v", err)
	}
	if _, err := c.Recv(); err == nil {
		t.Error("the connection lives on")
	}
	if len(told) > 0 {
		t.Errorf("told again: %v", <-told)
	}
}
