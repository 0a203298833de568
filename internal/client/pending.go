package client

import "sync"

// pending is the table of one kind of open question, by number.
type pending[T any] struct {
	mu sync.Mutex
	m  map[uint64]T // guarded by mu
}

func (p *pending[T]) add(n uint64, v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.m == nil {
		p.m = make(map[uint64]T)
	}
	p.m[n] = v
}

func (p *pending[T]) take(n uint64) (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.m[n]
	delete(p.m, n)
	return v, ok
}

func (p *pending[T]) each(f func(T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.m {
		f(v)
	}
}
