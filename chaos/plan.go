package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"mobula/internal/fault"
)

// EnvSeed is the environment variable that Seed takes the seed from.
const EnvSeed = "MOBULA_CHAOS_SEED"

// Seed is the seed in MOBULA_CHAOS_SEED, to replay a run, else a random one. mobulatest logs it when a test fails.
func Seed() uint64 {
	text := os.Getenv(EnvSeed)
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("chaos: %s=%q is no number", EnvSeed, text)) // a replay with another seed would prove nothing
	}
	return seed
}

// Plan is the faults of one test. It is safe for concurrent use.
type Plan struct{ p *fault.Plan }

// New makes a plan. If several rules hit the same occurrence the first one decides; the others count it. A rule that makes
// no sense is an error when a runtime is started with the plan.
func New(seed uint64, rules ...Rule) *Plan {
	all := make([]fault.Rule, len(rules))
	for i, r := range rules {
		all[i] = r.rule()
	}
	return &Plan{fault.New(seed, all)}
}

// Faults is the plan as the runtime takes it.
func (p *Plan) Faults() *fault.Plan { return p.p }

// Seed is the seed that the plan's random decisions depend on.
func (p *Plan) Seed() uint64 { return p.p.Seed() }

// Hold makes whoever reaches the place from now on wait there, in any process.
func (p *Plan) Hold(place string) { p.p.Hold(place) }

// Release lets those that wait at the place go on, and ends the hold.
func (p *Plan) Release(place string) { p.p.Release(place) }

// Reached waits until the place has been reached that many times since the plan was made. Those that are held there count; those
// that a rule freezes there are frozen when Reached returns.
func (p *Plan) Reached(ctx context.Context, place string, times int) error {
	return p.p.Reached(ctx, place, times)
}

// Count is how often the place has been reached.
func (p *Plan) Count(place string) int { return p.p.Count(place) }

// Thaw lets every frozen process go on.
func (p *Plan) Thaw() { p.p.Thaw() }

// Quiet ends all faults: from now on nothing fails or is held, and frozen processes go on. A test can then check what the faults left behind.
func (p *Plan) Quiet() { p.p.Quiet() }

// Hit is a fault that was made.
type Hit struct {
	Rule       int // its index in the plan
	Occurrence int // among those of the rule's target
	What       string
	Delay      time.Duration // of a delay
}

// Hits are the faults made so far, in the order of their decisions.
func (p *Plan) Hits() []Hit {
	var out []Hit
	for _, e := range p.p.Events() {
		out = append(out, Hit{Rule: e.Rule, Occurrence: e.N, What: fmt.Sprintf("%s at %v", e.Do, e.Site), Delay: e.For})
	}
	return out
}

// Point marks a place in the program, where a test may wait, or may kill, freeze or delay the process. Without a plan it does nothing, at the
// cost of one atomic load. It waits at most until ctx ends.
func Point(ctx context.Context, name string) { _ = fault.Point(ctx, name) }

// Check is a Point that may fail: it returns the error of a rule's Fail, else nil.
func Check(ctx context.Context, name string) error { return fault.Point(ctx, name) }
