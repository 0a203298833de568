package order

// tally counts for some leaves how many roots each lacks, and finds the leaf that lacks the fewest. Places that
// are close together change together, so it is a segment tree over ranges of places. Leaves that lack nothing are
// not counted.
type tally struct {
	size  int32
	nodes []tallyNode // the halves of a range lo..hi at i are at i+1 and i+2(mid-lo)
}

type tallyNode struct {
	lazy  int32 // still to be subtracted below
	all   least
	begun least // least of the leaves that are begun
}

// least is the leaf that lacks the fewest roots; of several, the first by rank.
type least struct{ lacks, rank int32 }

// nothing is the lacks of a range without such a leaf.
const nothing = 1 << 30

func (a least) before(b least) bool {
	return a.lacks < b.lacks || a.lacks == b.lacks && a.rank < b.rank
}

func first(a, b least) least {
	if b.before(a) {
		return b
	}
	return a
}

func (a *least) lower(by int32) {
	if a.lacks != nothing {
		a.lacks -= by
	}
}

func newTally(places int) tally {
	t := tally{size: int32(places), nodes: make([]tallyNode, max(2*places-1, 1))}
	for i := range t.nodes {
		t.nodes[i].all.lacks, t.nodes[i].begun.lacks = nothing, nothing
	}
	return t
}

func (t *tally) least() (all, begun least) { return t.nodes[0].all, t.nodes[0].begun }

// at is the index of the node for a single place.
func (t *tally) at(place int32) int32 {
	i, lo, hi := int32(0), int32(0), t.size
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if place < mid {
			i, hi = i+1, mid
		} else {
			i, lo = i+2*(mid-lo), mid
		}
	}
	return i
}

// set gives a leaf to a place. After the last, build must be called.
func (t *tally) set(place, lacks, rank int32) {
	t.nodes[t.at(place)].all = least{lacks, rank}
}

func (t *tally) build() { t.buildRange(0, 0, t.size) }

func (t *tally) buildRange(i, lo, hi int32) {
	if hi-lo <= 1 {
		return
	}
	mid := (lo + hi) / 2
	t.buildRange(i+1, lo, mid)
	t.buildRange(i+2*(mid-lo), mid, hi)
	t.pull(i, i+2*(mid-lo))
}

// pull recomputes node i from its halves.
func (t *tally) pull(i, right int32) {
	n, a, b := &t.nodes[i], &t.nodes[i+1], &t.nodes[right]
	n.all, n.begun = first(a.all, b.all), first(a.begun, b.begun)
}

func (t *tally) take(i, by int32) {
	n := &t.nodes[i]
	n.all.lower(by)
	n.begun.lower(by)
	n.lazy += by
}

// push passes what is still to be subtracted on to the halves.
func (t *tally) push(i, right int32) {
	if by := t.nodes[i].lazy; by != 0 {
		t.take(i+1, by)
		t.take(right, by)
		t.nodes[i].lazy = 0
	}
}

// lower subtracts one from each place of s.
func (t *tally) lower(s span) { t.lowerRange(0, 0, t.size, s) }

func (t *tally) lowerRange(i, lo, hi int32, s span) {
	if s.hi <= lo || hi <= s.lo || t.nodes[i].all.lacks == nothing {
		return
	}
	if s.lo <= lo && hi <= s.hi {
		t.take(i, 1)
		t.dropRange(i, lo, hi)
		return
	}
	mid := (lo + hi) / 2
	right := i + 2*(mid-lo)
	t.push(i, right)
	t.lowerRange(i+1, lo, mid, s)
	t.lowerRange(right, mid, hi, s)
	t.pull(i, right)
}

// dropRange drops leaves that lack nothing.
func (t *tally) dropRange(i, lo, hi int32) {
	n := &t.nodes[i]
	if n.all.lacks > 0 {
		return
	}
	if hi-lo == 1 {
		n.all.lacks, n.begun.lacks = nothing, nothing
		return
	}
	mid := (lo + hi) / 2
	right := i + 2*(mid-lo)
	t.push(i, right)
	t.dropRange(i+1, lo, mid)
	t.dropRange(right, mid, hi)
	t.pull(i, right)
}

// begin notes that the leaf at a place is begun.
func (t *tally) begin(place int32) {
	t.change(0, 0, t.size, place, func(n *tallyNode) { n.begun = n.all })
}

// drop drops the leaf at a place.
func (t *tally) drop(place int32) {
	t.change(0, 0, t.size, place, func(n *tallyNode) { n.all.lacks, n.begun.lacks = nothing, nothing })
}

func (t *tally) change(i, lo, hi, place int32, how func(*tallyNode)) {
	if hi-lo == 1 {
		how(&t.nodes[i])
		return
	}
	mid := (lo + hi) / 2
	right := i + 2*(mid-lo)
	t.push(i, right)
	if place < mid {
		t.change(i+1, lo, mid, place, how)
	} else {
		t.change(right, mid, hi, place, how)
	}
	t.pull(i, right)
}
