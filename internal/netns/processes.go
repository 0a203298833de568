package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Processes are those in the host, but never this one.
func (h *Host) Processes() ([]int, error) {
	ino, err := h.inode()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("netns: %w", err)
	}
	want := fmt.Sprintf("net:[%d]", ino)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() { // whose thread may be in the host just now
			continue
		}
		if in, err := os.Readlink("/proc/" + e.Name() + "/ns/net"); err == nil && in == want { // one that has ended is in none
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Signal sends a signal to all processes in the host.
func (h *Host) Signal(sig unix.Signal) error {
	pids, err := h.Processes()
	if err != nil {
		return err
	}
	var all []error
	for _, pid := range pids {
		if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
			all = append(all, fmt.Errorf("netns: signal %v to process %d: %w", sig, pid, err))
		}
	}
	return errors.Join(all...)
}

// Kill ends all processes in the host without notice, and waits until there is none. Its error is fs.ErrNotExist if there is no such host any more.
func (h *Host) Kill(ctx context.Context) error {
	for {
		if err := h.Signal(unix.SIGKILL); err != nil {
			return err
		}
		left, err := h.Processes() // a process may have started another one meanwhile
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("netns: processes %v of %s do not end: %w", left, h.namespace, context.Cause(ctx))
		}
	}
}
