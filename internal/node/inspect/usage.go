package inspect

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"mobula/internal/state"
	"mobula/objectstore"
)

// Usage is how much memory is in use now. It costs little however many objects there are: samplers ask for it often.
func (n *Inspector) Usage(ctx context.Context, _ Empty) (state.Usage, error) {
	type bytes struct{ held, backed uint64 }
	b, err := inStore(ctx, n, func(c *objectstore.Core) bytes {
		held, backed := c.Memory()
		return bytes{held, backed}
	})
	if err != nil {
		return state.Usage{}, err
	}
	u := state.Usage{Held: b.held, Backed: b.backed}
	for _, t := range n.node.Parts().Spiller.Stats().Targets {
		u.Spilled += t.Assigned
	}
	pids := map[int]bool{os.Getpid(): true}
	for _, s := range n.node.Clients() {
		pids[int(s.PID)] = true
	}
	for pid := range pids {
		u.Private += private(pid)
	}
	u.Processes, u.Time = len(pids), n.Clock.Now()
	return u, nil
}

// private is the memory of a process in bytes, without what files and shared memory have in it; 0 where that cannot be read.
func private(pid int) uint64 {
	resident, shared := statm(pid)
	return resident - min(resident, shared)
}

// rss is a process' resident memory in bytes, 0 where that cannot be read.
func rss(pid int) uint64 {
	resident, _ := statm(pid)
	return resident
}

func statm(pid int) (resident, shared uint64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 3 {
		return 0, 0
	}
	pages := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0
		}
		return n * uint64(os.Getpagesize())
	}
	return pages(fields[1]), pages(fields[2])
}
