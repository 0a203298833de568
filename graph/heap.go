package graph

// rankHeap is a heap of ranks, the lowest first.
type rankHeap []int32

func (h *rankHeap) push(r int32) {
	*h = append(*h, r)
	s := *h
	for i := len(s) - 1; i > 0; {
		p := (i - 1) / 2
		if s[p] <= s[i] {
			return
		}
		s[p], s[i] = s[i], s[p]
		i = p
	}
}

func (h *rankHeap) pop() int32 {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	*h = s
	for i := 0; ; {
		l := 2*i + 1
		if l >= n {
			return top
		}
		if l+1 < n && s[l+1] < s[l] {
			l++
		}
		if s[i] <= s[l] {
			return top
		}
		s[i], s[l] = s[l], s[i]
		i = l
	}
}
