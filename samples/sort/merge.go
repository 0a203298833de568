package main

// merger merges sorted runs with a tree of losers: one comparison per level and record.
type merger struct {
	runs [][]byte
	keys []uint64 // prefix of each run's head
	tree []int32  // tree[0] is the winner, tree[i] the loser of match i
}

// mergeInto merges the runs into dst, which has exactly their size.
func mergeInto(dst []byte, runs [][]byte) {
	live := make([][]byte, 0, len(runs))
	for _, r := range runs {
		if len(r) > 0 {
			live = append(live, r)
		}
	}
	switch len(live) {
	case 0:
		return
	case 1:
		copy(dst, live[0])
		return
	}
	m := &merger{runs: live, keys: make([]uint64, len(live)), tree: make([]int32, len(live))}
	for i, r := range live {
		m.keys[i] = prefix(r)
		m.tree[i] = -1
	}
	for i := range live {
		m.enter(int32(i))
	}
	for len(dst) > 0 {
		w := m.tree[0]
		copy(dst, m.runs[w][:recordSize])
		dst = dst[recordSize:]
		m.runs[w] = m.runs[w][recordSize:]
		if len(m.runs[w]) > 0 {
			m.keys[w] = prefix(m.runs[w])
		}
		m.replay(w)
	}
}

// enter places a run when the tree is built: it waits at the first free match.
func (m *merger) enter(w int32) {
	for i := (int(w) + len(m.runs)) / 2; i > 0; i /= 2 {
		if m.tree[i] < 0 {
			m.tree[i] = w
			return
		}
		if m.beats(m.tree[i], w) {
			w, m.tree[i] = m.tree[i], w
		}
	}
	m.tree[0] = w
}

// replay plays the winner's run again with its next record.
func (m *merger) replay(w int32) {
	for i := (int(w) + len(m.runs)) / 2; i > 0; i /= 2 {
		if m.beats(m.tree[i], w) {
			w, m.tree[i] = m.tree[i], w
		}
	}
	m.tree[0] = w
}

// beats tells whether run a's head goes before run b's. An empty run loses.
func (m *merger) beats(a, b int32) bool {
	switch {
	case len(m.runs[a]) == 0:
		return false
	case len(m.runs[b]) == 0:
		return true
	case m.keys[a] != m.keys[b]:
		return m.keys[a] < m.keys[b]
	}
	return less(m.runs[a], m.runs[b])
}
