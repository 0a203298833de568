package mobulatest

import (
	"io"
	"sync"
)

// output is where nodes log: the output of their test, until it ends. What comes then, of a probe that was under way, would end all tests.
type output struct {
	mu    sync.Mutex
	w     io.Writer // guarded by mu
	ended bool      // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return len(p), nil
	}
	return o.w.Write(p)
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
}
