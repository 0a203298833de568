package main

import (
	"time"

	"mobula/internal/heap"
)

// bound is what no schedule is below: the work shared out evenly, or the longest task.
func bound(tasks []task, slots int) time.Duration {
	var sum, longest time.Duration
	for _, t := range tasks {
		sum += t.runs
		longest = max(longest, t.runs)
	}
	return max(sum/time.Duration(slots), longest)
}

// greedy is how long the tasks take if each begins in their order as soon as any slot is free, wherever its arguments are. No scheduler does better that does not know
// how long a task takes before it has ended: to it all tasks that wait are the same, so one order is as good as another, and none gains by beginning a task later.
// What it is above bound is the end, when the longest of the last tasks still run and nothing waits any more.
func greedy(tasks []task, slots int) time.Duration {
	sooner := func(a, b *time.Duration) bool { return *a < *b }
	free := make([]time.Duration, 0, slots)
	var end time.Duration
	for _, t := range tasks {
		begin := time.Duration(0)
		if len(free) == slots {
			begin = heap.Pop(&free, sooner)
		}
		heap.Push(&free, begin+t.runs, sooner)
		end = max(end, begin+t.runs)
	}
	return end
}
