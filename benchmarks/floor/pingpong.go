package floor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	childEnv   = "MOBULA_FLOOR_CHILD"
	childSock  = 3 // the first of exec.Cmd.ExtraFiles
	maxMessage = 1 << 20
)

// Child is called first in main by every program that calls PingPong or StartPeer. In the process that these start it does what that
// is for, and exits; elsewhere it returns at once.
func Child() {
	role := os.Getenv(childEnv)
	if role == "" {
		return
	}
	var err error
	if host, ok := strings.CutPrefix(role, peerRole); ok {
		err = servePeer(host)
	} else {
		err = echo()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor: other process:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func echo() error {
	f := os.NewFile(childSock, "socket")
	c, err := net.FileConn(f)
	if err != nil {
		return err
	}
	_ = f.Close()
	var size int
	if _, err := fmt.Sscan(os.Getenv(childEnv), &size); err != nil || size < 1 || size > maxMessage {
		return fmt.Errorf("%s=%q is no message size: %v", childEnv, os.Getenv(childEnv), err)
	}
	return echoOn(c, size)
}

// echoOn sends messages of that size back, until the connection ends.
func echoOn(c net.Conn, size int) error {
	buf := make([]byte, size)
	for {
		if _, err := io.ReadFull(c, buf); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := c.Write(buf); err != nil {
			return err
		}
	}
}

// Messages say what PingPong sends.
type Messages struct {
	Bytes  int // each way; 0: 256
	Rounds int // samples; 0: 20,000
	Warmup int // rounds before the first sample; 0: 1,000
}

func (m Messages) withDefaults() (Messages, error) {
	if m.Bytes == 0 {
		m.Bytes = 256
	}
	if m.Rounds == 0 {
		m.Rounds = 20_000
	}
	if m.Warmup == 0 {
		m.Warmup = 1000
	}
	if m.Bytes > maxMessage {
		return m, fmt.Errorf("floor: Bytes is %d, at most %d are possible", m.Bytes, maxMessage)
	}
	return m, positive("Bytes", int64(m.Bytes), "Rounds", int64(m.Rounds), "Warmup", int64(m.Warmup))
}

// PingPong sends a message to another process over a Unix stream socket and waits for it to come back, with the Go
// runtime's net package on both ends: seconds a round.
func PingPong(ctx context.Context, m Messages) ([]float64, error) {
	m, err := m.withDefaults()
	if err != nil {
		return nil, err
	}
	conn, wait, err := startEcho(ctx, m.Bytes)
	if err != nil {
		return nil, err
	}
	samples, err := rounds(ctx, conn, m)
	_ = conn.Close() // the echo process ends
	return samples, errors.Join(err, wait())
}

func startEcho(ctx context.Context, bytes int) (net.Conn, func() error, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("floor: socket pair: %w", err)
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")
	defer mine.Close()
	defer theirs.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("floor: find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childEnv, bytes))
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("floor: start echo process: %w", err)
	}
	wait := func() error {
		if err := cmd.Wait(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("floor: echo process: %w", err)
		}
		return nil
	}
	conn, err := net.FileConn(mine)
	if err != nil {
		_ = theirs.Close()
		_ = mine.Close()
		return nil, nil, errors.Join(fmt.Errorf("floor: socket: %w", err), wait())
	}
	return conn, wait, nil
}

func rounds(ctx context.Context, conn net.Conn, m Messages) ([]float64, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	out := make([]float64, 0, m.Rounds)
	msg, back := make([]byte, m.Bytes), make([]byte, m.Bytes)
	in := bufio.NewReaderSize(conn, max(m.Bytes, 4096))
	for i := range m.Warmup + m.Rounds {
		msg[0] = byte(i)
		begun := time.Now()
		if _, err := conn.Write(msg); err != nil {
			return nil, cause(ctx, err)
		}
		if _, err := io.ReadFull(in, back); err != nil {
			return nil, cause(ctx, err)
		}
		d := time.Since(begun)
		if back[0] != msg[0] {
			return nil, fmt.Errorf("floor: round %d came back as %d", i, back[0])
		}
		if i >= m.Warmup {
			out = append(out, d.Seconds())
		}
	}
	return out, nil
}

func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return fmt.Errorf("floor: connection: %w", err)
}
