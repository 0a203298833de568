package actors

import (
	"sync"
	"testing"
	"testing/synctest"
)

// The goroutines of a pool are used again, a bounded number of them, and none is left.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{}
		idle := func() int {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.idle)
		}
		gate := make(chan struct{})
		var mu sync.Mutex
		ran := 0
		turn := func() {
			<-gate
			mu.Lock()
			defer mu.Unlock()
			ran++
		}
		for range 3 * maxIdle {
			p.Schedule(turn)
		}
		close(gate)
		synctest.Wait()
		if ran != 3*maxIdle || idle() != maxIdle {
			t.Errorf("%d turns ran and %d goroutines are idle; want %d and %d", ran, idle(), 3*maxIdle, maxIdle)
		}
		for range 10 {
			p.Schedule(turn)
			synctest.Wait()
		}
		if ran != 3*maxIdle+10 || idle() != maxIdle {
			t.Errorf("%d turns ran and %d goroutines are idle after ten more", ran, idle())
		}
		p.close()
		p.close()
		p.Schedule(turn) // of a component that ends after its stop was given up
		synctest.Wait()
		if ran != 3*maxIdle+11 || idle() != 0 {
			t.Errorf("after close %d turns ran and %d goroutines are idle", ran, idle())
		}
	}) // a goroutine that is left fails the bubble
}
