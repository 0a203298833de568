package testkit

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// patienceVariable multiplies the bound of all waits: for a machine that is slow, or a run under a detector.
const patienceVariable = "MOBULA_TEST_PATIENCE"

const quietPatience = 90 * time.Second

// Patience is how long a test waits for what has to come: 90 s, times MOBULA_TEST_PATIENCE. A test that waits so long has found a hang.
// How fast a thing is, is measured in benchmarks or told in virtual time, never held by a bound in a test.
func Patience() time.Duration { return patience() }

var patience = sync.OnceValue(func() time.Duration {
	s := os.Getenv(patienceVariable)
	if s == "" {
		return quietPatience
	}
	times, err := strconv.ParseFloat(s, 64)
	if err != nil || !(times > 0 && times <= 100) {
		panic(patienceVariable + " is " + strconv.Quote(s) + ": it takes a number above 0, up to 100")
	}
	return time.Duration(times * float64(quietPatience))
})

// Within is a context that ends with the test, or when its patience does.
func Within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience())
	t.Cleanup(cancel)
	return ctx
}

// Eventually waits until a condition holds, and ends the test where the patience ends first.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	end := time.Now().Add(Patience())
	for pause := leastPause; !cond(); pause = min(2*pause, mostPause) {
		if time.Now().After(end) {
			t.Fatalf("within %v: never %s", Patience(), what)
		}
		time.Sleep(pause)
	}
}

// Eventually looks soon, and then less often: what takes long has the processor to itself.
const (
	leastPause = time.Millisecond
	mostPause  = 16 * time.Millisecond
)

// Receive takes what a channel gives, and ends the test where the patience ends first. A channel that is closed gives the zero value.
func Receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	end := time.NewTimer(Patience())
	defer end.Stop()
	select {
	case v := <-ch:
		return v
	case <-end.C:
		t.Fatalf("within %v: never %s", Patience(), what)
		panic("not reached")
	}
}
