package main

import "sync"

// note is what goes over a channel.
type note[T any] struct {
	do    byte
	n     int
	v     T
	reply chan T
	count chan int
}

const (
	doAnswer  byte = iota // v
	doDrop                // v
	doCount               // what was dropped
	doAskNext             // n times
	doToken               // v, passed on
)

// channels is the floor of a room: goroutines with a channel each.
type channels[T any] struct {
	kind  *kind[T]
	in    []chan note[T]
	ended chan struct{}
	all   sync.WaitGroup
}

func openChannels[T any](k *kind[T], actors int) room {
	r := &channels[T]{kind: k, in: make([]chan note[T], actors), ended: make(chan struct{}, tokens)}
	room := 2 * tokens // for all of them
	if actors == 1 {
		room = window
	}
	for i := range r.in {
		r.in[i] = make(chan note[T], room)
	}
	for i, in := range r.in {
		r.all.Go(func() { r.serve(in, r.in[(i+1)%actors]) })
	}
	return r
}

// serve is one of them.
func (r *channels[T]) serve(in, next chan note[T]) {
	told := 0
	for m := range in {
		switch m.do {
		case doAnswer:
			m.reply <- r.kind.after(m.v)
		case doDrop:
			told++
		case doCount:
			m.count <- told
		case doAskNext:
			ask, right := asking(r.kind, next), 0
			for i := range m.n {
				if ask(i) == nil {
					right++
				}
			}
			m.count <- right
		case doToken:
			left := r.kind.num(m.v)
			if left == 0 {
				r.ended <- struct{}{}
				continue
			}
			next <- note[T]{do: doToken, v: r.kind.of(left - 1)}
		}
	}
}

// asking asks over two channels.
func asking[T any](k *kind[T], to chan note[T]) func(i int) error {
	reply := make(chan T, 1)
	return func(i int) error {
		to <- note[T]{do: doAnswer, v: k.of(i), reply: reply}
		if got := k.num(<-reply); got != i+1 {
			return wrong(i, got)
		}
		return nil
	}
}

func (r *channels[T]) asker() func(i int) error { return asking(r.kind, r.in[0]) }

func (r *channels[T]) tell(i int) error {
	r.in[0] <- note[T]{do: doDrop, v: r.kind.of(i)}
	return nil
}

func (r *channels[T]) heard() (int, error) {
	count := make(chan int, 1)
	r.in[0] <- note[T]{do: doCount, count: count}
	return <-count, nil
}

func (r *channels[T]) outstanding(n, window int, all bool) error {
	reply := make(chan T, window)
	ask := func(i int) { r.in[0] <- note[T]{do: doAnswer, v: r.kind.of(i), reply: reply} }
	for i := range window {
		ask(i)
	}
	for i := range n {
		if got := r.kind.num(<-reply); got != i+1 {
			return wrong(i, got)
		}
		switch last := i%window == window-1; {
		case !all && i+window < n:
			ask(i + window)
		case all && last && i+1 < n:
			for j := range window {
				ask(i + 1 + j)
			}
		}
	}
	return nil
}

func (r *channels[T]) asks(actor, n int) func() error {
	count := make(chan int, 1)
	r.in[actor] <- note[T]{do: doAskNext, n: n, count: count}
	return func() error {
		if got := <-count; got != n {
			return wrong(n, got)
		}
		return nil
	}
}

func (r *channels[T]) pass(actor, hops int) error {
	r.in[actor] <- note[T]{do: doToken, v: r.kind.of(hops)}
	return nil
}

func (r *channels[T]) over() <-chan struct{} { return r.ended }

func (r *channels[T]) close() error {
	for _, in := range r.in {
		close(in)
	}
	r.all.Wait()
	return nil
}
