package heap

// Push adds x to the heap h, in which before tells which of two comes first.
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

// Pop takes the first off a heap that is not empty.
func Pop[T any](h *[]T, before func(a, b *T) bool) T {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	clear(s[n:]) // what it refers to is not kept
	s = s[:n]
	*h = s
	for i := 0; ; {
		l := 2*i + 1
		if l >= n {
			return top
		}
		if l+1 < n && before(&s[l+1], &s[l]) {
			l++
		}
		if !before(&s[l], &s[i]) {
			return top
		}
		s[i], s[l] = s[l], s[i]
		i = l
	}
}
