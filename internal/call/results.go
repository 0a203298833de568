package call

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"mobula/internal/client"
)

// resultBuffer is an open result of a running task.
type resultBuffer struct {
	raw   *client.Buffer
	index int
	at    unsafe.Pointer // address of its first element
	size  int
	plan  *Plan
}

// resultTable holds the open results of this process' running tasks. Most tasks have none, and check only count.
type resultTable struct {
	count atomic.Int64
	mu    sync.Mutex
	open  map[*client.TaskContext][]*resultBuffer // guarded by mu
}

var openResults resultTable

func (t *resultTable) add(tc *client.TaskContext, b *resultBuffer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[*client.TaskContext][]*resultBuffer)
	}
	t.open[tc] = append(t.open[tc], b)
	t.count.Add(1)
}

// takeResult finds the open buffer that the result r, of that index, aliases.
func takeResult(tc *client.TaskContext, index int, p *Plan, r unsafe.Pointer) *resultBuffer {
	if openResults.count.Load() == 0 || p.Width() == 0 {
		return nil
	}
	s := (*struct {
		at       unsafe.Pointer
		len, cap int
	})(r)
	return openResults.take(tc, func(b *resultBuffer) bool {
		return b.index == index && b.plan == p && b.size == s.len*int(p.Width()) && (b.size == 0 || b.at == s.at)
	})
}

func (t *resultTable) take(tc *client.TaskContext, match func(*resultBuffer) bool) *resultBuffer {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.open[tc]
	for i, b := range list {
		if match(b) {
			t.open[tc] = append(list[:i:i], list[i+1:]...)
			t.count.Add(-1)
			return b
		}
	}
	return nil
}

// callEnds frees buffers that the task created and did not return.
func callEnds(ctx context.Context) {
	if openResults.count.Load() == 0 {
		return
	}
	tc := client.FromContext(ctx)
	if tc == nil {
		return
	}
	openResults.mu.Lock()
	left := openResults.open[tc]
	delete(openResults.open, tc)
	openResults.count.Add(-int64(len(left)))
	openResults.mu.Unlock()
	for _, b := range left {
		b.raw.Abort()
	}
}
