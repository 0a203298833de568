package cluster

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobula/e2e/harness"
	"mobula/internal/netns"
)

// What an idle node may cost, with all its processes.
const (
	idleCPU    = 0.01     // of a core
	idleMemory = 60 << 20 // bytes
)

// It measures, so it is a stress test: beside other tests the figures mean nothing.
func TestStressAnIdleNodeCostsLittle(t *testing.T) {
	if os.Getenv("MOBULA_STRESS") == "" {
		t.Skip("set MOBULA_STRESS=1, on a quiet machine")
	}
	c := start(t, network(t, harness.Size(3, 32)))
	window := time.Duration(harness.Size(10, 30)) * time.Second
	<-time.After(10 * time.Second) // what a start leaves to do is done
	var before []time.Duration
	for _, n := range c.Nodes() {
		before = append(before, processorTime(t, n.Host))
	}
	begun := time.Now()
	<-time.After(window)
	for i, n := range c.Nodes() {
		share := float64(processorTime(t, n.Host)-before[i]) / float64(time.Since(begun))
		m := memoryOf(t, n.Host)
		t.Logf("the node on %v takes %.2f %% of a core and %.1f MiB", n.Host.Addr, 100*share, float64(m)/(1<<20))
		if share > idleCPU || m > idleMemory {
			t.Errorf("the idle node on %v takes %.2f %% of a core and %d MiB, want at most %.0f %% and %d MiB",
				n.Host.Addr, 100*share, m>>20, 100*idleCPU, idleMemory>>20)
		}
	}
}

// processorTime is what all processes of a host have used.
func processorTime(t *testing.T, h *netns.Host) (d time.Duration) {
	t.Helper()
	const (
		user, system = 11, 12            // among the fields behind the name
		tick         = time.Second / 100 // USER_HZ
	)
	for _, pid := range processes(t, h) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has just ended
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		for _, i := range []int{user, system} {
			n, err := strconv.ParseInt(string(fields[i]), 10, 64)
			must(t, err)
			d += time.Duration(n) * tick
		}
	}
	return d
}

// memoryOf is the proportional share (PSS) of all processes of a host: what several nodes share of the executable counts once in all.
func memoryOf(t *testing.T, h *netns.Host) (total int64) {
	t.Helper()
	for _, pid := range processes(t, h) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue // it has just ended
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			if size, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
				kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
				must(t, err)
				total += kib << 10
			}
		}
	}
	return total
}

func processes(t *testing.T, h *netns.Host) []int {
	t.Helper()
	pids, err := h.Processes()
	must(t, err)
	return pids
}
