package memmon

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	for _, c := range []struct {
		name    string
		room    uint64
		cpus    int
		watched bool
		want    time.Duration
	}{
		{"no room", 0, 2, false, Interval},
		{"2 GiB, which two CPUs can fill in half a second", 2 << 30, 2, false, Interval},
		{"8 GiB, half of what they fill in two", 8 << 30, 2, false, time.Second},
		{"far from any limit", 1 << 40, 2, false, Slowest},
		{"an unknown number of CPUs", 2 << 30, 0, false, 500 * time.Millisecond},
		{"a worker that asked for memory", 1 << 40, 2, true, Interval},
	} {
		if got := Pace(c.room, c.cpus, c.watched); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// However fast memory grows, it is seen before the limit.
func TestMemoryIsSampledBeforeItIsFull(t *testing.T) {
	const limit, cpus = 64 << 30, 4
	samples := 0
	for used, now := 0.0, time.Duration(0); used < 0.7*limit; samples++ {
		d := Pace(uint64(0.7*limit-used), cpus, false)
		now += d
		used += d.Seconds() * growth * cpus / 2 // as fast as half of the CPUs clear pages
		if used > 0.8*limit {
			t.Fatalf("after %v %v GiB are used, seen last below 70 %% of 64", now, used/(1<<30))
		}
	}
	if samples < 4 {
		t.Errorf("%d samples on the way", samples)
	}
}
