package harness

import (
	"os"
	"testing"

	"mobula/mobulatest"
)

// Main is what TestMain of a package calls: it runs the tests, or is the node, the driver or the worker that a test has started this binary
// again to be, as its environment says. Others are what only tests of that package start: each tells whether this process was to be it.
func Main(m *testing.M, others ...func() bool) {
	if os.Getenv("MOBULA_WORKER_ID") == "" { // a worker has its driver's environment
		for _, isIt := range append([]func() bool{nodeMain, driverMain}, others...) {
			if isIt() {
				return
			}
		}
	}
	mobulatest.Main(m)
}
