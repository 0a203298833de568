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

// tick is how often Await checks its context, and without a pidfd the process.
const tick = 100 * time.Millisecond

// openPidfd is unix.PidfdOpen; a test makes it fail.
var openPidfd = unix.PidfdOpen

// Process is a watched process.
type Process struct {
	pid int
	fd  int // -1: there is no pidfd
}

// Open begins to watch a process. With a pidfd it stays the same process even if its number is reused. A process that is gone
// already gives ErrGone.
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

// ErrGone is the error of Open for a process that is gone.
var ErrGone = errors.New("no such process")

// Close ends the watching.
func (p *Process) Close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // it was only polled
	}
}

// Gone tells whether the process has ended.
func (p *Process) Gone() bool { return p.wait(0) }

// wait is Gone, but waits up to d for the end.
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

// Kill sends a signal to the process. With a pidfd it cannot hit another process that got its number.
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

// numberGone checks only the number.
func numberGone(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return true
	}
	state, _, err := stat(pid)
	return errors.Is(err, os.ErrNotExist) || err == nil && (state == "Z" || state == "X")
}

// Start is when a process started, in clock ticks since boot, which distinguishes it from a later process with its number.
// For a process that has ended it is 0 and gone is true; if it is unknown it is 0 and gone is false.
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

// Same tells whether the process that started at start still runs; true if that is unknown.
func Same(pid int, start uint64) bool {
	if pid <= 0 {
		return false
	}
	ticks, gone := Start(pid)
	return !gone && (ticks == 0 || ticks == start) && !Gone(pid)
}

// Execs tells whether a live process whose environment was read as empty may have one: /proc shows none in the moment of an exec, and none to a reader
// that has opened it before.
func Execs(pid int) bool {
	fields, err := stats(pid)
	const size, envStart, envEnd = 23 - first, 50 - first, 51 - first
	if err != nil || len(fields) <= envEnd || fields[size] == "0" { // it is gone, a zombie, or a thread of the kernel
		return false
	}
	return fields[envEnd] == "0" || fields[envStart] != fields[envEnd]
}

func stat(pid int) (state string, start uint64, err error) {
	fields, err := stats(pid)
	if err != nil {
		return "", 0, err
	}
	const startTime = 22 - first
	if len(fields) <= startTime {
		return "", 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	start, err = strconv.ParseUint(fields[startTime], 10, 64)
	return fields[0], start, err
}

// first is proc(5)'s number, which counts from 1, of the first field that stats gives: the state.
const first = 3

// stats reads /proc/PID/stat.
func stats(pid int) (fields []string, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ") // the name may hold anything
	return strings.Fields(rest), nil
}
