package main

import (
	"fmt"
	"strings"
	"time"
)

// limit is what a part may take: it is stopped then, which its row says.
const limit = 20 * time.Minute

// part is one part of the deep run.
type part struct {
	name, says string
	// commands run one after the other in the clone, by sh, and stop with the first failure. ${SEED} is a number of this run.
	commands []string
}

const (
	race = "CGO_ENABLED=1 MOBULA_TEST_PATIENCE=3 go test -race -tags invariants -count=1 -timeout 18m "
	gate = "go run ./internal/tools/gate "
)

func seeded(n int) string { return fmt.Sprintf("MOBULA_TEST_SEED=${SEED}%d %spackages", n, gate) }

var parts = []part{
	{"race-cores", "Go's race detector, with invariants: cores and what they stand on",
		[]string{race + "./actors/... ./chaos/... ./gcs/... ./graph/... ./objectstore/... ./raylet/... ./telemetry/... ./wire/... ./worker/..."}},
	{"race-nodes", "the same: what joins them to a node, and messages between nodes",
		[]string{"make python", race + ". ./arrowipc/... ./cmd/... ./internal/... ./mobulatest/... ./remote/... ./samples/..."}},
	{"race-ends", "the same: the whole, with processes", []string{"make python", race + "-p 1 ./e2e/api ./e2e/disk ./e2e/languages"}},
	{"by-owner", "calls of actors by the owner, as all went before decision 0038",
		[]string{"MOBULA_STRAIGHT_CALLS=0 go test -count=1 -timeout 18m . ./mobulatest ./graph/... ./internal/call ./internal/node ./e2e/api ./e2e/faults"}},
	{"race-faults", "the same: under kills and restarts", []string{race + "-p 1 ./e2e/cluster ./e2e/faults ./e2e/restarts"}},
	{"fuzz", "every fuzz target, for an equal share of 17 minutes", []string{"go run ./internal/tools/fuzzall -within 17m"}},
	{"fuzz-codec", "the codec of values alone, for 18 minutes", []string{"go run ./internal/tools/fuzzall -within 18m ./internal/codec"}},
	{"seeds", "property tests and simulations with three new seeds", []string{"make python", seeded(1), seeded(2), seeded(3)}},
	{"quarantine", "the tests in quarantine, 20 times", []string{"make python", gate + "-quarantine 20"}},
	{"newest-python", "the tests of the SDK on the newest Python", []string{"make pytest-newest"}},
	{"dask", "a sample of Dask's own tests under our scheduler", []string{"make dask-suite ARGS='--sample 12 --fresh --jobs 2'"}},
	{"suites", "joblib's own tests, and Dask-ML", []string{"make joblib-suite", "make dask-ml"}},
	{"stress", "the fault tests at full size, with new seeds", []string{"make stress SEED=${SEED} STRESS_COUNT=1 STRESS_TIME=18m"}},
	{"sim", "a million tasks on 1,000 and 10,000 nodes in virtual time, within 1.2 of the ideal; and the control plane of 10,000",
		[]string{"MOBULA_STRESS=1 CGO_ENABLED=0 go test -count=1 -timeout 18m ./benchmarks/sim"}},
	{"soak", "15 minutes of short jobs under kills", []string{"make soak SOAK=15m"}},
	{"upgrade", "nodes of the last release are replaced one by one while a program of it sorts", []string{"make upgrade"}},
	{"life", "one job of millions of tasks, then one under 100 kills of its node", []string{"make life"}},
}

// draws tells whether the part draws from the seed of the run.
func (p part) draws() bool { return strings.Contains(strings.Join(p.commands, " "), "${SEED}") }

// named is the part of a name.
func named(name string) (part, error) {
	var names []string
	for _, p := range parts {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	return part{}, fmt.Errorf("there is no part %q: there are %s", name, strings.Join(names, ", "))
}
