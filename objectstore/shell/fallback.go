package shell

import (
	"errors"
	"maps"
	"os"
	"sync"
)

// files are the open fallback files; they outlive the core.
type files struct {
	mu   sync.Mutex
	last uint32              // guarded by mu
	open map[uint32]*os.File // guarded by mu
	path map[uint32]string   // guarded by mu
}

func (f *files) number() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	return f.last
}

func (f *files) add(n uint32, file *os.File, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == nil {
		f.path = make(map[uint32]string)
	}
	f.open[n], f.path[n], f.last = file, path, max(f.last, n)
}

func (f *files) get(n uint32) *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open[n]
}

func (f *files) take(n uint32) *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	file := f.open[n]
	delete(f.open, n)
	delete(f.path, n)
	return file
}

func (f *files) paths() map[uint32]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.path)
}

func (f *files) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var es []error
	for _, file := range f.open {
		es = append(es, file.Close())
	}
	clear(f.open)
	return errors.Join(es...)
}
