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

// Seed is the one that MOBULA_CHAOS_SEED names, to replay a run; else one at random. mobulatest says which when a test fails.
func Seed() uint64 {
	text := os.Getenv(EnvSeed)
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("chaos: %s=%q is no number", EnvSeed, text)) // a replay with another seed would say nothing
	}
	return seed
}

// Plan is what is to go wrong in one test. It is safe for concurrent use.
type Plan struct{ p *fault.Plan }

// New makes a plan. Of rules that hit one occurrence together the first decides; the others count it. A rule that makes no
// sense is an error of the start of what it is given to.
func New(seed uint64, rules ...Rule) *Plan {
	all := make([]fault.Rule, len(rules))
	for i, r := range rules {
		all[i] = r.rule()
	}
	return &Plan{fault.New(seed, all)}
}

// Faults is the plan as the runtime takes it.
func (p *Plan) Faults() *fault.Plan { return p.p }

// Seed is what the plan's chances depend on.
func (p *Plan) Seed() uint64 { return p.p.Seed() }

// Hold has whoever reaches the place from now on wait there, in whichever process.
func (p *Plan) Hold(place string) { p.p.Hold(place) }

// Release lets those who wait at the place go on, and holds it no more.
func (p *Plan) Release(place string) { p.p.Release(place) }

// Reached waits until the place has been reached so many times since the plan was made; those who are held there count, and those
// who are frozen there are so by then.
func (p *Plan) Reached(ctx context.Context, place string, times int) error {
	return p.p.Reached(ctx, place, times)
}

// Count is how often the place has been reached.
func (p *Plan) Count(place string) int { return p.p.Count(place) }

// Thaw lets every frozen process go on.
func (p *Plan) Thaw() { p.p.Thaw() }

// Quiet ends all faults: from now on nothing goes wrong, nobody is held, and what is frozen goes on. What follows shows what the faults left.
func (p *Plan) Quiet() { p.p.Quiet() }

// Hit is one thing that went wrong.
type Hit struct {
	Rule       int // its place in the plan
	Occurrence int // among those of the rule's target
	What       string
	Delay      time.Duration // of a delay
}

// Hits are what went wrong so far, in the order in which it was decided.
func (p *Plan) Hits() []Hit {
	var out []Hit
	for _, e := range p.p.Events() {
		out = append(out, Hit{Rule: e.Rule, Occurrence: e.N, What: fmt.Sprintf("%s at %v", e.Do, e.Site), Delay: e.For})
	}
	return out
}

// Point marks a place in the program: one where a test may wait, or have the process die, freeze or be late. Without a plan it does nothing, at
// the cost of one atomic load. It waits for ctx at most.
func Point(ctx context.Context, name string) { _ = fault.Point(ctx, name) }

// Check is a Point that may fail: its error is one that a rule's Fail says, and nil otherwise.
func Check(ctx context.Context, name string) error { return fault.Point(ctx, name) }
