package testkit

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// seedVariable holds a number that gives every test another seed; without it, and with 0, each has that of its name.
const seedVariable = "MOBULA_TEST_SEED"

// Seed is the seed of a test: made of its name, so that each run draws the same, and of MOBULA_TEST_SEED, which gives all tests others.
// It is never 0. A test that fails says with which one it ran.
func Seed(t testing.TB) uint64 {
	t.Helper()
	run := runSeed(t)
	h := fnv.New64a()
	h.Write([]byte(t.Name())) // a hash takes everything
	seed := h.Sum64() ^ run*0x9e3779b97f4a7c15
	if seed == 0 {
		seed = 1
	}
	told(t, "seed "+strconv.FormatUint(seed, 10), run)
	return seed
}

// Seeds are n seeds, for a test that runs a simulation with each: 0, 1 and so on, or as many others that MOBULA_TEST_SEED gives. Those of
// a run are the same for all tests, so that a seed says by itself what it makes. They fit into an int64.
func Seeds(t testing.TB, n int) []uint64 {
	t.Helper()
	run := runSeed(t)
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = run%maxRun*seedsOfARun + uint64(i)
	}
	if n > 0 {
		told(t, fmt.Sprintf("seeds %d to %d", seeds[0], seeds[n-1]), run)
	}
	return seeds
}

// Runs have so many seeds each, and so many runs have others. Decimal, for one who reads them.
const seedsOfARun, maxRun = 1_000_000, 1_000_000_000_000

// told has a test say how it runs again, if it fails.
func told(t testing.TB, seeds string, run uint64) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: %s=%d runs it again", seeds, seedVariable, run)
		}
	})
}

// Rand is a source of random numbers with the seed of the test.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}

// Check is rapid.Check with the seed of the test. A seed on the command line, -rapid.seed, comes first. A test that checks the same again and
// again would draw the same again: it takes a subtest for each time.
func Check(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	if seedGiven() {
		rapid.Check(t, prop)
		return
	}
	begun := lend(Seed(t))
	defer begun()
	rapid.Check(t, func(t *rapid.T) {
		begun()
		prop(t)
	})
}

// seedGiven tells whether the command line has a seed for rapid: asked before the first is set here.
var seedGiven = sync.OnceValue(func() bool { return flag.Lookup(rapidSeed).Value.String() != "0" })

const rapidSeed = "rapid.seed"

// lending is held from the setting of rapid's seed, which is one for the process, until the check has read it: before it calls the property.
var lending sync.Mutex

// lend sets rapid's seed. What it returns ends that, and may be called again.
func lend(seed uint64) (begun func()) {
	lending.Lock()
	setSeed(seed)
	return sync.OnceFunc(func() {
		setSeed(0)
		lending.Unlock()
	})
}

func setSeed(seed uint64) {
	if err := flag.Set(rapidSeed, strconv.FormatUint(seed, 10)); err != nil {
		panic(err) // every number is a seed
	}
}

// runSeed is the number that the environment gives to all tests of this run.
func runSeed(t testing.TB) uint64 {
	t.Helper()
	s := os.Getenv(seedVariable)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s is %q: it takes a whole number from 0", seedVariable, s)
	}
	return n
}
