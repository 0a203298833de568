package alloc

// key orders first by a, then by b.
type key struct{ a, b uint64 }

func (k key) less(o key) bool { return k.a < o.a || (k.a == o.a && k.b < o.b) }

// tree is a treap of distinct keys in one slice. It has no pointers for the garbage collector to follow. Its shape
// follows from the keys alone, so it needs no randomness.
type tree struct {
	nodes []node // nodes[0] is the nil node
	root  uint32
	spare uint32 // head of the list of unused nodes, linked by left
}

type node struct {
	key
	prio        uint32
	left, right uint32
}

// prio is a hash: equal keys have equal ones, close keys have different ones.
func prio(k key) uint32 {
	x := k.a*0x9e3779b97f4a7c15 ^ (k.b+0x632be59bd9b4e019)*0xd6e8feb86659fd93
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return uint32(x>>32) ^ uint32(x)
}

func (t *tree) put(a, b uint64) {
	if len(t.nodes) == 0 {
		t.nodes = append(t.nodes, node{})
	}
	i := t.spare
	if i != 0 {
		t.spare = t.nodes[i].left
	} else {
		t.nodes = append(t.nodes, node{})
		i = uint32(len(t.nodes) - 1)
	}
	k := key{a, b}
	t.nodes[i] = node{key: k, prio: prio(k)}
	t.root = t.insert(t.root, i)
}

func (t *tree) insert(at, i uint32) uint32 {
	if at == 0 {
		return i
	}
	n := t.nodes
	switch {
	case n[i].prio > n[at].prio:
		n[i].left, n[i].right = t.split(at, n[i].key)
		return i
	case n[i].less(n[at].key):
		n[at].left = t.insert(n[at].left, i)
	default:
		n[at].right = t.insert(n[at].right, i)
	}
	return at
}

// split parts the subtree into keys below k and the others.
func (t *tree) split(at uint32, k key) (lo, hi uint32) {
	if at == 0 {
		return 0, 0
	}
	n := t.nodes
	if n[at].less(k) {
		n[at].right, hi = t.split(n[at].right, k)
		return at, hi
	}
	lo, n[at].left = t.split(n[at].left, k)
	return lo, at
}

func (t *tree) merge(lo, hi uint32) uint32 {
	n := t.nodes
	switch {
	case lo == 0:
		return hi
	case hi == 0:
		return lo
	case n[lo].prio > n[hi].prio:
		n[lo].right = t.merge(n[lo].right, hi)
		return lo
	}
	n[hi].left = t.merge(lo, n[hi].left)
	return hi
}

func (t *tree) remove(a, b uint64) {
	if len(t.nodes) == 0 {
		return
	}
	k := key{a, b}
	link := &t.root
	for *link != 0 {
		n := &t.nodes[*link]
		switch {
		case k == n.key:
			i := *link
			*link = t.merge(n.left, n.right)
			t.nodes[i] = node{left: t.spare}
			t.spare = i
			return
		case k.less(n.key):
			link = &n.left
		default:
			link = &n.right
		}
	}
}

// floor is the largest key not above (a, b).
func (t *tree) floor(a, b uint64) (found key, ok bool) {
	k := key{a, b}
	for at := t.root; at != 0; {
		n := &t.nodes[at]
		if k.less(n.key) {
			at = n.left
		} else {
			found, ok, at = n.key, true, n.right
		}
	}
	return found, ok
}

// ceil is the smallest key not below (a, b).
func (t *tree) ceil(a, b uint64) (found key, ok bool) {
	k := key{a, b}
	for at := t.root; at != 0; {
		n := &t.nodes[at]
		if n.less(k) {
			at = n.right
		} else {
			found, ok, at = n.key, true, n.left
		}
	}
	return found, ok
}
