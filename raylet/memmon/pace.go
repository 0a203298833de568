package memmon

import "time"

// Slowest is the longest time between two samples.
const Slowest = 2 * time.Second

// growth is how many bytes a second processes on one CPU can take at most: the rate at which the kernel clears
// pages.
const growth = 2 << 30

// Pace is how long to wait for the next sample: less than the time in which memory can grow by room, and at least
// Interval. If there are workers that may not take more than they asked for, it is Interval.
func Pace(room uint64, cpus int, watched bool) time.Duration {
	if watched {
		return Interval
	}
	d := float64(room) / (growth * float64(max(cpus, 1))) / 2 * float64(time.Second)
	return time.Duration(min(max(d, float64(Interval)), float64(Slowest)))
}
