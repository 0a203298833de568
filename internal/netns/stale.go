package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	prefix = "mobula-"     // of the names of all namespaces
	folder = "/run/netns/" // where ip has them
)

// maker is the process that made a network.
type maker struct {
	pid     int
	started int64 // in clock ticks after the boot
}

// makerOf reads the name of a network, or of a namespace of it.
func makerOf(name string) (m maker, ok bool) {
	rest, ours := strings.CutPrefix(name, prefix)
	parts := strings.Split(rest, "-")
	if !ours || len(parts) < 3 {
		return m, false
	}
	pid, err := strconv.Atoi(parts[0])
	started, err2 := strconv.ParseInt(parts[1], 10, 64)
	return maker{pid, started}, err == nil && err2 == nil
}

// lives tells whether the process is still there, and not another of the same id.
func (m maker) lives() bool {
	started, err := startOf(m.pid)
	return err == nil && started == m.started
}

// startOf is when a process was started, in clock ticks after the boot.
func startOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const started = 19 // among the fields behind the name, which may have anything in it
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= started {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return strconv.ParseInt(string(fields[started]), 10, 64)
}

// removeStale removes the namespaces of processes that are gone. What cannot be removed is in nobody's way, and is tried again by the next one.
func removeStale() {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	names, _ := filepath.Glob(folder + prefix + "*")
	for _, path := range names {
		name := filepath.Base(path)
		if m, ok := makerOf(name); ok && !m.lives() {
			_ = remove(ctx, name)
		}
	}
}

// remove ends the processes of a namespace and removes it, if there is one.
func remove(ctx context.Context, namespace string) error {
	h := &Host{namespace: namespace}
	err := h.Kill(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, ip(ctx, "", "netns del "+namespace))
}
