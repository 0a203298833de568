package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// This file is the floor of two processes: messages over a Unix socket, a byte that says what to do and the value. What is written goes out when its writer has nothing more
// to do at once.

// socketEnv tells the other process that it is one, and how long a value is.
const socketEnv = "ACTORBENCH_SOCKET"

const socketFile = 3 // the first of exec.Cmd.ExtraFiles

// socket is a seat at the other end of one.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
	out  *bufio.Writer
	msg  []byte // what was last sent or received
	wait func() error
}

const socketBuffer = 64 << 10

func openSocket(ctx context.Context, bytes int) (*socket, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")
	defer mine.Close()
	defer theirs.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	conn, err := net.FileConn(mine)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", socketEnv, bytes))
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the other process: %w", err), conn.Close())
	}
	return &socket{conn: conn, in: bufio.NewReaderSize(conn, socketBuffer), out: bufio.NewWriterSize(conn, socketBuffer), msg: make([]byte, 1+bytes), wait: cmd.Wait}, nil
}

// socketMain serves if this process is the other one, and tells whether it is.
func socketMain() (bool, error) {
	text := os.Getenv(socketEnv)
	if text == "" {
		return false, nil
	}
	var bytes int
	if _, err := fmt.Sscan(text, &bytes); err != nil || bytes < 8 {
		return true, fmt.Errorf("%s=%q is no length of a value", socketEnv, text)
	}
	f := os.NewFile(socketFile, "socket")
	conn, err := net.FileConn(f)
	if err != nil {
		return true, fmt.Errorf("socket: %w", err)
	}
	_ = f.Close()
	return true, answerOn(conn, bytes)
}

// answerOn answers until the other end is closed.
func answerOn(conn io.ReadWriter, bytes int) error {
	in, out := bufio.NewReaderSize(conn, socketBuffer), bufio.NewWriterSize(conn, socketBuffer)
	msg := make([]byte, 1+bytes)
	for told := uint64(0); ; {
		if _, err := io.ReadFull(in, msg); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		switch msg[0] {
		case doDrop:
			told++
			continue
		case doCount:
			binary.LittleEndian.PutUint64(msg[1:], told)
		default:
			binary.LittleEndian.PutUint64(msg[1:], binary.LittleEndian.Uint64(msg[1:])+1)
		}
		if _, err := out.Write(msg); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func (s *socket) send(do byte, i int) error {
	s.msg[0] = do
	binary.LittleEndian.PutUint64(s.msg[1:], uint64(i))
	_, err := s.out.Write(s.msg)
	return err
}

// receive takes the next answer; what was sent goes out if there is none.
func (s *socket) receive() (int, error) {
	if s.in.Buffered() == 0 {
		if err := s.out.Flush(); err != nil {
			return 0, err
		}
	}
	if _, err := io.ReadFull(s.in, s.msg); err != nil {
		return 0, fmt.Errorf("the other process: %w", err)
	}
	return int(binary.LittleEndian.Uint64(s.msg[1:])), nil
}

func (s *socket) answered(i int) error {
	got, err := s.receive()
	if err == nil && got != i+1 {
		err = wrong(i, got)
	}
	return err
}

func (s *socket) asker() func(i int) error {
	return func(i int) error {
		if err := s.send(doAnswer, i); err != nil {
			return err
		}
		return s.answered(i)
	}
}

func (s *socket) tell(i int) error { return s.send(doDrop, i) }

func (s *socket) heard() (int, error) {
	if err := s.send(doCount, 0); err != nil {
		return 0, err
	}
	return s.receive()
}

func (s *socket) outstanding(n, window int, _ bool) error {
	for i := range window {
		if err := s.send(doAnswer, i); err != nil {
			return err
		}
	}
	for i := range n {
		if err := s.answered(i); err != nil {
			return err
		}
		if next := i + window; next < n {
			if err := s.send(doAnswer, next); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *socket) close() error { return errors.Join(s.conn.Close(), s.wait()) }
