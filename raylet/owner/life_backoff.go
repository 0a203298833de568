package owner

import (
	"mobula/raylet/owner/task"
)

// What ends its process again and again waits before it runs again: not the first time, then twice as long each time. How much
// longer or shorter than that is drawn from its id and the number of the time, so that many that ended together do not come back
// together, and a core that steps the same events waits the same.

// retryAt is when a task that waits runs again, Unix ns; 0: it does not wait.
func (t *taskRec) retryAt() int64 {
	if t.state != task.Backoff || t.x == nil || t.x.timer == nil {
		return 0
	}
	return t.x.timer.at
}
