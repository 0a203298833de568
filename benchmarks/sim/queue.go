package main

import (
	"time"

	"mobula/internal/ids"
)

// task is how long it runs and where its arguments are; 0: it has none.
type task struct {
	runs time.Duration
	args ids.Home

	at    int32
	given bool
}

// queue is the tasks of a job that are not given out yet, in order.
type queue struct {
	tasks []task
	after []int32 // of each: where to look for the next
	head  int32
	left  int
}

func newQueue(tasks []task) queue {
	q := queue{tasks: tasks, after: make([]int32, len(tasks)), left: len(tasks)}
	for i := range tasks {
		tasks[i].at, q.after[i] = int32(i), int32(i+1)
	}
	return q
}

func (q *queue) first() *task { return q.from(&q.head) }

func (q *queue) next(t *task) *task { return q.from(&q.after[t.at]) }

// from gives the first task from a place on that is not given out, and moves the place there.
func (q *queue) from(at *int32) *task {
	for int(*at) < len(q.tasks) && q.tasks[*at].given {
		*at = q.after[*at]
	}
	if int(*at) == len(q.tasks) {
		return nil
	}
	return &q.tasks[*at]
}

// take gives a task out.
func (q *queue) take(t *task) {
	t.given = true
	q.left--
}
