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

	"mobula"
)

// watch samples the memory of this process and all below it, and asks the node what it spilled.
type watch struct {
	c    *mobula.Cluster
	quit chan struct{}
	work sync.WaitGroup
	once sync.Once

	mu  sync.Mutex
	max usage // guarded by mu
}

func newWatch(c *mobula.Cluster, every time.Duration) *watch {
	w := &watch{c: c, quit: make(chan struct{})}
	if every > 0 {
		w.work.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				w.sample()
				select {
				case <-tick.C:
				case <-w.quit:
					return
				}
			}
		})
	}
	return w
}

// note asks the node for its counters. They may be a little old, so it asks until they are not.
func (w *watch) note(ctx context.Context, u *usage) error {
	if w.c == nil {
		return nil
	}
	begun := time.Now()
	for {
		s, err := w.c.Status(ctx)
		if err != nil {
			return err
		}
		u.Spilled, u.Restored = int64(s.Store.SpilledEver), int64(s.Store.RestoredEver)
		if counted := time.Unix(0, s.Now-s.Store.Age); counted.After(begun) {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stop ends the sampling and adds what was found.
func (w *watch) stop(u *usage) {
	w.once.Do(func() { close(w.quit) })
	w.work.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	u.Segment, u.Heap, u.PSS, u.Samples = w.max.Segment, w.max.Heap, w.max.PSS, w.max.Samples
}

func (w *watch) sample() {
	var total memory
	for _, pid := range family(os.Getpid()) {
		m, err := memoryOf(pid)
		if err != nil {
			continue // it has just ended
		}
		total.pss += m.pss
		total.shared += m.shared
		total.anon += m.anon
	}
	segment := segmentPages()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.max.Segment = max(w.max.Segment, segment)
	w.max.Heap = max(w.max.Heap, total.anon)
	w.max.PSS = max(w.max.PSS, total.pss+max(0, segment-total.shared))
	w.max.Samples++
}

// memory is a process' share of memory in bytes.
type memory struct{ pss, shared, anon int64 }

func memoryOf(pid int) (m memory, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return m, err
	}
	defer func() { _ = f.Close() }() // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			continue
		}
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "Pss":
			m.pss = kib << 10
		case "Pss_Shmem":
			m.shared = kib << 10
		case "Pss_Anon":
			m.anon = kib << 10
		}
	}
	return m, nil
}

// family gives a process and all that descend from it.
func family(root int) []int {
	parents := make(map[int][]int)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []int{root}
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		// pid (name) state ppid ...: the name may contain anything, so search from its end.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			parents[parent] = append(parents[parent], pid)
		}
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		all = append(all, parents[all[i]]...)
	}
	return all
}

// segmentPages is the memory that the segment's file has, mapped or not.
func segmentPages() (bytes int64) {
	seen := make(map[uint64]bool)
	links, _ := filepath.Glob("/proc/self/fd/*")
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
