package pidfd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is how often Await looks whether its context has ended, and where there is no pidfd whether the process has.
const tick = 100 * time.Millisecond

// openPidfd is unix.PidfdOpen; a test has it fail.
var openPidfd = unix.PidfdOpen

// Process is one that is watched.
type Process struct {
	pid int
	fd  int // -1: no pidfd could be had
}

// Open begins to watch a process: it stays the same one whoever has its number later, where the kernel gives a pidfd. One that is
// gone already is ErrGone.
func Open(pid int) (*Process, error) {
	fd, err := openPidfd(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("process %d: %w", pid, ErrGone)
	case err != nil:
		fd = -1
	}
	p := &Process{pid: pid, fd: fd}
	if p.Gone() {
		p.Close()
		return nil, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return p, nil
}

// ErrGone is what Open gives for a process that is gone.
var ErrGone = errors.New("no such process")

// Close ends the watching.
func (p *Process) Close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // only asked
	}
}

// Gone tells whether the process has ended.
func (p *Process) Gone() bool { return p.wait(0) }

// wait is Gone, at the latest after d.
func (p *Process) wait(d time.Duration) bool {
	if p.fd < 0 {
		if !numberGone(p.pid) && d > 0 {
			time.Sleep(d)
		}
		return numberGone(p.pid)
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(d.Milliseconds()))
	return err == nil && n > 0
}

// Await returns when the process is gone, at the latest after d or when ctx ends; it tells whether it is.
func (p *Process) Await(ctx context.Context, d time.Duration) bool {
	end := time.Now().Add(d)
	for {
		left := min(time.Until(end), tick)
		if p.wait(max(left, 0)) {
			return true
		}
		if left <= 0 || ctx.Err() != nil {
			return false
		}
	}
}

// Kill sends a signal to the process, and to no other that got its number, where there is a pidfd.
func (p *Process) Kill(sig unix.Signal) error {
	err := error(nil)
	if p.fd < 0 {
		err = unix.Kill(p.pid, sig)
	} else {
		err = unix.PidfdSendSignal(p.fd, sig, nil, 0)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// Gone tells whether the process of a number has ended, or there never was one.
func Gone(pid int) bool {
	p, err := Open(pid)
	if err != nil {
		return true
	}
	defer p.Close()
	return p.Gone()
}

// Await returns when the process is gone, at the latest after d or when ctx ends; it tells whether it is.
func Await(ctx context.Context, pid int, d time.Duration) bool {
	p, err := Open(pid)
	if err != nil {
		return true
	}
	defer p.Close()
	return p.Await(ctx, d)
}

// numberGone asks by number alone.
func numberGone(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return true
	}
	state, _, err := stat(pid)
	return errors.Is(err, os.ErrNotExist) || err == nil && (state == "Z" || state == "X")
}

// Start is when a process started, in clock ticks since the machine did, which tells it from a later one of its number. It is
// 0, and gone is true, for one that has ended; 0 alone where it cannot be told.
func Start(pid int) (ticks uint64, gone bool) {
	state, ticks, err := stat(pid)
	if err != nil {
		return 0, errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	if state == "Z" || state == "X" {
		return 0, true
	}
	return ticks, false
}

// Same tells whether the process that started then still runs; where that cannot be told it does.
func Same(pid int, start uint64) bool {
	if pid <= 0 {
		return false
	}
	ticks, gone := Start(pid)
	return !gone && (ticks == 0 || ticks == start) && !Gone(pid)
}

// stat reads what /proc says of a process.
func stat(pid int) (state string, start uint64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, err
	}
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ") // the name may hold anything
	fields := strings.Fields(rest)
	const startTime = 22 - 3 // proc(5) counts from 1; the state, the third, is our first
	if len(fields) <= startTime {
		return "", 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	start, err = strconv.ParseUint(fields[startTime], 10, 64)
	return fields[0], start, err
}
