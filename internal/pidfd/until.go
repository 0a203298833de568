package pidfd

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Until waits for the end of a process, however long it lives, and tells whether it has come; false: ctx ended before.
// With a pidfd it holds no thread meanwhile.
func Until(ctx context.Context, pid int) bool {
	fd, err := openPidfd(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return err == unix.ESRCH || untilNumberGone(ctx, pid)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer func() { _ = f.Close() }() // only waited on
	raw, err := f.SyscallConn()
	if err != nil {
		return untilNumberGone(ctx, pid)
	}
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })() // one that cannot be waited on fails below
	err = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	if err == nil || ctx.Err() != nil {
		return err == nil
	}
	return untilNumberGone(ctx, pid)
}

// untilNumberGone is Until without a pidfd, or with one that cannot be polled.
func untilNumberGone(ctx context.Context, pid int) bool {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for !numberGone(pid) {
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
