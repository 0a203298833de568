package actors

import "sync"

// maxIdle is how many goroutines a pool keeps between turns.
const maxIdle = 32

// pool is the dispatcher of the components without a thread of their own. It reuses its goroutines, the last one
// first: a new goroutine for each turn would grow its stack each time, which cost three quarters of the time of a
// hop.
type pool struct {
	mu     sync.Mutex
	idle   []chan func()
	closed bool
}

// Schedule implements actor.Dispatcher.
func (p *pool) Schedule(turn func()) {
	p.mu.Lock()
	last := len(p.idle) - 1
	if last < 0 {
		p.mu.Unlock()
		go p.work(turn)
		return
	}
	next := p.idle[last]
	p.idle = p.idle[:last]
	p.mu.Unlock()
	next <- turn // it has room for one, and only the goroutine that took it from the list sends
}

// Throughput implements actor.Dispatcher; the kit's mailbox does not use it.
func (p *pool) Throughput() int { return chunk }

func (p *pool) work(turn func()) {
	var next chan func()
	for turn != nil {
		turn()
		p.mu.Lock()
		if p.closed || len(p.idle) >= maxIdle {
			p.mu.Unlock()
			return
		}
		if next == nil {
			next = make(chan func(), 1)
		}
		p.idle = append(p.idle, next)
		p.mu.Unlock()
		turn = <-next
	}
}

// close ends the idle goroutines; later turns get new ones.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, next := range idle {
		next <- nil
	}
}
