package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// memory is a process' share of memory in bytes.
type memory struct{ pss, shared, anon int64 }

// memoryOf reads it; pid may be "self".
func memoryOf(pid string) (m memory, err error) {
	f, err := os.Open("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return m, fmt.Errorf("memory of process %s: %w", pid, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, rest, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			continue // the line of the address range
		}
		switch name {
		case "Pss":
			m.pss = n << 10
		case "Pss_Shmem":
			m.shared = n << 10
		case "Pss_Anon":
			m.anon = n << 10
		}
	}
	if m.pss == 0 && lines.Err() == nil {
		return m, fmt.Errorf("memory of process %s: it has ended", pid)
	}
	return m, lines.Err()
}

// usage is the memory of a process and all below it.
type usage struct {
	pss, shared, segment int64 // shared: of pss, memory of files such as the segment
	processes            int
}

// outside is what the segment has that no process has mapped.
func (u usage) outside() int64 { return max(0, u.segment-u.shared) }

// total is PSS and what of the segment is not in it. While pages are being mapped, shares read one process after another
// add up to more than the segment has; its own count is right.
func (u usage) total() int64 {
	if u.segment > 0 {
		return u.pss - u.shared + u.segment
	}
	return u.pss
}

// usageOf measures it.
func usageOf(root int) usage {
	var u usage
	seen := make(map[uint64]bool)
	for _, pid := range family(root) {
		m, err := memoryOf(strconv.Itoa(pid))
		if err != nil {
			continue // it has just ended
		}
		u.processes++
		u.pss += m.pss
		u.shared += m.shared
		u.segment += segmentOf(pid, seen)
	}
	return u
}

// family gives a process and all that descend from it.
func family(root int) []int {
	children := make(map[int][]int)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []int{root}
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if fields := statOf(pid); len(fields) > statParent {
			if parent, err := strconv.Atoi(fields[statParent]); err == nil {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// Places in what statOf gives.
const (
	statParent = 1
	statUser   = 11 // clock ticks
	statSystem = 12
	tick       = time.Second / 100 // USER_HZ
)

// statOf gives the fields of /proc/PID/stat behind the name, which may hold anything; none if the process is gone.
func statOf(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// processorTime is what a process and all below it have used; of a child that has ended nothing is known.
func processorTime(root int) (d time.Duration) {
	for _, pid := range family(root) {
		fields := statOf(pid)
		if len(fields) <= statSystem {
			continue
		}
		for _, i := range []int{statUser, statSystem} {
			if n, err := strconv.ParseInt(fields[i], 10, 64); err == nil {
				d += time.Duration(n) * tick
			}
		}
	}
	return d
}

// segmentOf is the memory that the segment files open in a process have, mapped or not.
func segmentOf(pid int, seen map[uint64]bool) (bytes int64) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, l := range links {
		target, err := os.Readlink(l)
		if err != nil || !strings.Contains(target, "mobula") || !strings.HasPrefix(target, "/memfd:") && !strings.HasPrefix(target, "/dev/shm/") {
			continue
		}
		info, err := os.Stat(l)
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !seen[st.Ino] {
			seen[st.Ino] = true
			bytes += st.Blocks * 512
		}
	}
	return bytes
}

// sampler looks at this process' and its children's memory from time to time.
type sampler struct {
	quit chan struct{}
	work sync.WaitGroup
	peak usage // written by the goroutine until it ends
}

// sample starts one; stop ends it.
func sample(ctx context.Context, every time.Duration) *sampler {
	s := &sampler{quit: make(chan struct{})}
	s.work.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			if u := usageOf(os.Getpid()); u.total() > s.peak.total() {
				s.peak = u
			}
			select {
			case <-t.C:
			case <-s.quit:
				return
			case <-ctx.Done():
				return
			}
		}
	})
	return s
}

// stop gives the moment of the greatest use.
func (s *sampler) stop() usage {
	close(s.quit)
	s.work.Wait()
	if u := usageOf(os.Getpid()); u.total() > s.peak.total() {
		s.peak = u
	}
	return s.peak
}
