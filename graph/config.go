package graph

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Policy says how root tasks are given to workers.
type Policy uint8

// The policies.
const (
	// Both withholds root tasks and runs related ones on one worker.
	Both Policy = iota
	// Withhold sends a root task to the least busy worker once that worker has a slot for it, as Dask does today.
	Withhold
	// CoAssign sends all root tasks at once, in runs of neighbours, as Dask does with worker-saturation inf.
	CoAssign
)

// String names the policy.
func (p Policy) String() string {
	switch p {
	case Both:
		return "both"
	case Withhold:
		return "withhold"
	case CoAssign:
		return "co-assign"
	}
	return "invalid"
}

// Defaults; the first two are Dask's.
const (
	DefaultSaturation      = 1.1
	DefaultAllowedFailures = 3
	DefaultStealInterval   = time.Second
	DefaultBandwidth       = 100 << 20 // bytes a second, until it is measured
	defaultDuration        = int64(500 * time.Millisecond)
)

// Config configures a Core.
type Config struct {
	Policy Policy
	// Saturation is Dask's worker-saturation: a worker has max(ceil(Saturation*threads), 1) slots for root tasks,
	// minus the tasks that it processes. Inf turns withholding off.
	Saturation float64
	// AllowedFailures is the number of workers that have to die while they run a task for the task to fail, at most
	// 255; 0 counts as 1.
	AllowedFailures int
	// StealInterval is how often the shell should send Tick; below 0 no work is stolen.
	StealInterval time.Duration
	// Bandwidth between workers in bytes a second, to compare moving with waiting.
	Bandwidth float64
	// Budget is how many bytes results may hold in the cluster before no more root tasks are let in. 0 derives it
	// from the graph, from sizes seen and from what workers say they may hold. If nothing else runs, a root task
	// runs whatever the budget.
	Budget int64
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{
		Saturation:      DefaultSaturation,
		AllowedFailures: DefaultAllowedFailures,
		StealInterval:   DefaultStealInterval,
		Bandwidth:       DefaultBandwidth,
	}
}

// Validate gives an error with everything that is wrong in c.
func (c Config) Validate() error {
	var errs []error
	if c.Policy > CoAssign {
		errs = append(errs, fmt.Errorf("graph: policy %d is not one of them", c.Policy))
	}
	if c.Saturation < 0 || math.IsNaN(c.Saturation) {
		errs = append(errs, fmt.Errorf("graph: saturation %v: give 0 or more, or Inf", c.Saturation))
	}
	if c.AllowedFailures < 0 || c.AllowedFailures > math.MaxUint8 {
		errs = append(errs, fmt.Errorf("graph: allowed failures %d: give 0 to %d", c.AllowedFailures, math.MaxUint8))
	}
	if !(c.Bandwidth > 0) {
		errs = append(errs, fmt.Errorf("graph: bandwidth %v: give more than 0", c.Bandwidth))
	}
	if c.Budget < 0 {
		errs = append(errs, fmt.Errorf("graph: budget %d: give 0 or more", c.Budget))
	}
	return errors.Join(errs...)
}
