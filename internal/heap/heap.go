package heap

// Push adds x to the heap h; before is the heap's order.
func Push[T any](h *[]T, x T, before func(a, b *T) bool) {
	*h = append(*h, x)
	rise(*h, len(*h)-1, before, nil)
}

// Pop removes the first value of a heap that is not empty.
func Pop[T any](h *[]T, before func(a, b *T) bool) T {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	clear(s[n:]) // drop its references
	*h = s[:n]
	sink(s[:n], 0, before, nil)
	return top
}

// Replace replaces the first value of a heap that is not empty by x.
func Replace[T any](h []T, x T, before func(a, b *T) bool) {
	h[0] = x
	sink(h, 0, before, nil)
}

// rise moves the element at index i up to where it belongs. Each that moves is told its new index, where moved is not nil.
func rise[T any](s []T, i int, before func(a, b *T) bool, moved func(x *T, i int)) {
	for i > 0 {
		p := (i - 1) / 2
		if !before(&s[i], &s[p]) {
			return
		}
		swap(s, i, p, moved)
		i = p
	}
}

// sink moves the element at index i down to where it belongs, and tells as rise does.
func sink[T any](s []T, i int, before func(a, b *T) bool, moved func(x *T, i int)) {
	for {
		l := 2*i + 1
		if l >= len(s) {
			return
		}
		if l+1 < len(s) && before(&s[l+1], &s[l]) {
			l++
		}
		if !before(&s[l], &s[i]) {
			return
		}
		swap(s, i, l, moved)
		i = l
	}
}

func swap[T any](s []T, i, j int, moved func(x *T, i int)) {
	s[i], s[j] = s[j], s[i]
	if moved != nil {
		moved(&s[i], i)
		moved(&s[j], j)
	}
}
