package heap

// Push adds x to the heap h; before is the heap's order.
func Push[T any](h *[]T, x T, before func(a, b *T) bool) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0; {
		p := (i - 1) / 2
		if !before(&s[i], &s[p]) {
			return
		}
		s[p], s[i] = s[i], s[p]
		i = p
	}
}

// Pop removes the first value of a heap that is not empty.
func Pop[T any](h *[]T, before func(a, b *T) bool) T {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	clear(s[n:]) // drop its references
	*h = s[:n]
	sink(s[:n], before)
	return top
}

// Replace replaces the first value of a heap that is not empty by x.
func Replace[T any](h []T, x T, before func(a, b *T) bool) {
	h[0] = x
	sink(h, before)
}

// sink moves the first value down to its place.
func sink[T any](s []T, before func(a, b *T) bool) {
	for i := 0; ; {
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
		s[i], s[l] = s[l], s[i]
		i = l
	}
}
