package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mobula/e2e/harness"
)

// The harness, by the names that it has in this package.
var (
	stress     = harness.Stress
	size       = harness.Size
	limit      = harness.Limit
	quiet      = harness.Quiet
	tempDir    = harness.TempDir
	startNode  = harness.StartNode
	bothModes  = harness.BothModes
	eventually = harness.Eventually
)

// workersOf lists the worker processes of the node that listens at the address.
func workersOf(address string) []int {
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	want := "MOBULA_WORKER_SOCKET=" + address + "\x00"
	var pids []int
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(env), want) {
			continue // gone, or another's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
