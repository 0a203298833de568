package nodes

import "sync"

// tailSize is how much of a log is kept.
const tailSize = 16 << 10

// tail keeps the last bytes that are written to it.
type tail struct {
	mu    sync.Mutex
	bytes []byte // guarded by mu
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, p...)
	if over := len(t.bytes) - tailSize; over > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.bytes)
}
