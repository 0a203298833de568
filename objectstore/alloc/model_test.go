package alloc

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// model is the plain truth about what was handed out: one byte of shadow a 64-byte line.
type model struct {
	a      *Allocator
	lines  []uint32 // owner of each line, 0: none
	blocks map[uint32]Block
	backed []Owner // of a page's memory; 0: it has none
	next   uint32
}

func newModel(limit uint64) *model {
	a := New(limit)
	return &model{a: a, lines: make([]uint32, a.Limit()/Align), backed: make([]Owner, a.Limit()/Page), blocks: map[uint32]Block{}, next: 1}
}

func (m *model) paint(b Block, from, to uint32) error {
	for l := b.Off / Align; l < b.End()/Align; l++ {
		if m.lines[l] != from {
			return fmt.Errorf("line %d of block %+v belongs to %d, want %d", l, b, m.lines[l], from)
		}
		m.lines[l] = to
	}
	return nil
}

func (m *model) alloc(o Owner, size uint64, warmOnly bool) error {
	largest := m.a.Largest()
	b, ok := m.a.Alloc(o, size, warmOnly)
	for _, r := range m.a.Taken() {
		if err := m.unback(r); err != nil || r.Owner == o {
			return fmt.Errorf("taken from %d for %d: %v", r.Owner, o, err)
		}
	}
	if !ok {
		if !warmOnly && max(Page, (size+Page-1)&^(Page-1)) <= largest {
			return fmt.Errorf("%d bytes refused with a free extent of %d", size, largest)
		}
		return nil
	}
	if b.Size < size || b.Off%Align != 0 || b.End() > m.a.Limit() || (size >= Large && b.Off%Page != 0) {
		return fmt.Errorf("bad block %+v for %d bytes", b, size)
	}
	if warmOnly && len(m.a.Unbacked(b)) != 0 {
		return fmt.Errorf("cold block %+v where a warm one was asked", b)
	}
	for _, r := range m.a.Unbacked(b) {
		if err := m.back(Owned{o, r}); err != nil {
			return err
		}
	}
	for p := b.Off / Page; p <= (b.End()-1)/Page; p++ {
		if m.backed[p] != o {
			return fmt.Errorf("block %+v has no memory in page %d and Unbacked does not say so", b, p)
		}
	}
	m.blocks[m.next] = b
	m.next++
	return m.paint(b, 0, m.next-1)
}

func (m *model) back(r Owned) error {
	r.Range = m.a.ExtendToStep(r.Range, 16*Page)
	m.a.Back(r)
	for p := r.Off / Page; p < r.End()/Page; p++ {
		if m.backed[p] != 0 && m.backed[p] != r.Owner {
			return fmt.Errorf("page %d gets memory of %d and has that of %d", p, r.Owner, m.backed[p])
		}
		m.backed[p] = r.Owner
	}
	return nil
}

func (m *model) unback(r Owned) error {
	for l := r.Off / Align; l < r.End()/Align; l++ {
		if m.lines[l] != 0 {
			return fmt.Errorf("%+v takes memory from block %d", r, m.lines[l])
		}
	}
	for p := r.Off / Page; p < r.End()/Page; p++ {
		if m.backed[p] != r.Owner {
			return fmt.Errorf("page %d of %d given back, which is backed by %d", p, r.Owner, m.backed[p])
		}
		m.backed[p] = 0
	}
	return nil
}

func (m *model) pick(n uint64) (uint32, bool) {
	if len(m.blocks) == 0 {
		return 0, false
	}
	ids := make([]uint32, 0, len(m.blocks))
	for id := range m.blocks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids[n%uint64(len(ids))], true
}

func (m *model) freeOne(n uint64) error {
	id, ok := m.pick(n)
	if !ok {
		return nil
	}
	b := m.blocks[id]
	delete(m.blocks, id)
	if err := m.paint(b, id, 0); err != nil {
		return err
	}
	if err := m.a.Free(b); err != nil {
		return err
	}
	if err := m.a.Free(b); !errors.Is(err, ErrBadBlock) {
		return fmt.Errorf("second free of %+v: %v", b, err)
	}
	return nil
}

func (m *model) shrink(n, size uint64) error {
	id, ok := m.pick(n)
	if !ok {
		return nil
	}
	b := m.blocks[id]
	nb, err := m.a.Shrink(b, size)
	if err != nil {
		return err
	}
	if nb.Off != b.Off || nb.Size > b.Size || nb.Size < min(size, b.Size) {
		return fmt.Errorf("shrink of %+v to %d gave %+v", b, size, nb)
	}
	if err := m.paint(b, id, 0); err != nil {
		return err
	}
	m.blocks[id] = nb
	return m.paint(nb, 0, id)
}

func (m *model) release(keep, most uint64) error {
	var sum uint64
	for _, r := range m.a.Release(keep, most) {
		sum += r.Size
		if err := m.unback(r); err != nil {
			return fmt.Errorf("release: %w", err)
		}
	}
	if sum > most {
		return fmt.Errorf("released %d, at most %d asked", sum, most)
	}
	return nil
}

// withhold takes free pages, of which none is of a block.
func (m *model) withhold(n uint64) error {
	free := m.a.Limit() - m.a.Held()
	for _, r := range m.a.Withhold(n) {
		for l := r.Off / Align; l < r.End()/Align; l++ {
			if m.lines[l] != 0 {
				return fmt.Errorf("withheld %+v is of block %d", r, m.lines[l])
			}
		}
		for p := r.Off / Page; p < r.End()/Page; p++ {
			if m.backed[p] != r.Owner {
				return fmt.Errorf("page %d is to be punched and not backed", p)
			}
			m.backed[p] = 0
		}
	}
	if got := m.a.Withheld(); got != min(n, free)&^(Page-1) {
		return fmt.Errorf("withheld %d of %d, with %d free", got, n, free)
	}
	return nil
}

func (m *model) validate() error {
	var used, backed uint64
	for _, b := range m.blocks {
		used += b.Size
	}
	for _, p := range m.backed {
		if p != 0 {
			backed += Page
		}
	}
	switch {
	case used != m.a.Used():
		return fmt.Errorf("used %d, want %d", m.a.Used(), used)
	case m.a.Used() > m.a.Limit():
		return fmt.Errorf("used %d beyond the limit %d", used, m.a.Limit())
	case backed != m.a.Backed():
		return fmt.Errorf("backed %d, want %d", m.a.Backed(), backed)
	}
	return nil
}

// rebuild replays the live blocks into a fresh allocator, as after a crash.
func (m *model) rebuild() error {
	a := New(m.a.Limit())
	for _, b := range m.blocks {
		if err := a.Restore(b); err != nil {
			return err
		}
		if err := a.Restore(b); !errors.Is(err, ErrBadBlock) {
			return fmt.Errorf("second restore of %+v: %v", b, err)
		}
	}
	m.a = a
	for p := range m.backed {
		m.backed[p] = 0
		for l := p * Page / Align; l < (p+1)*Page/Align; l++ {
			if id := m.lines[l]; id != 0 {
				m.backed[p] = m.blocks[id].Owner
			}
		}
	}
	return nil
}

func (m *model) drain() error {
	for len(m.blocks) > 0 {
		if err := m.freeOne(0); err != nil {
			return err
		}
	}
	left := m.a.Limit() - m.a.Withheld()
	m.a.Withhold(m.a.Withheld()) // what is left moves into one piece
	if m.a.Used() != 0 || m.a.Held() != 0 || m.a.Largest() != left {
		return fmt.Errorf("all freed: used %d, held %d, largest extent %d of %d", m.a.Used(), m.a.Held(), m.a.Largest(), m.a.Limit())
	}
	if _, ok := m.a.Alloc(1, left, false); !ok {
		return fmt.Errorf("the whole segment is free and cannot be handed out")
	}
	return nil
}

// owner is one of three.
func owner(n uint64) Owner { return Owner(1 + n/8%3) }

func (m *model) step(op byte, x, y uint64) error {
	var err error
	switch op % 8 {
	case 0, 1:
		err = m.alloc(owner(y), x%(2*Large), y%4 == 0)
	case 2:
		err = m.alloc(owner(y), x%(m.a.Limit()+Page), false)
	case 3, 4, 5:
		err = m.freeOne(x)
	case 6:
		err = m.shrink(x, y%(4*Large))
	case 7:
		switch {
		case x%5 == 0:
			err = m.rebuild()
		case x%5 == 1 && y%8 == 0:
			err = m.withhold(y % (m.a.Limit() / 4))
		default:
			err = m.release(x%m.a.Limit(), y%m.a.Limit())
		}
	}
	if err != nil {
		return err
	}
	return m.validate()
}

func TestNothingOverlapsAndNothingIsLost(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		m := newModel(rapid.Uint64Range(Page, 4<<20).Draw(t, "limit"))
		ops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [3]uint64 {
			return [3]uint64{uint64(rapid.Byte().Draw(t, "op")), rapid.Uint64().Draw(t, "x"), rapid.Uint64().Draw(t, "y")}
		}), 1, 200).Draw(t, "ops")
		for _, o := range ops {
			if err := m.step(byte(o[0]), o[1], o[2]); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.drain(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzAllocator(f *testing.F) {
	f.Add(uint32(1<<20), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Add(uint32(Page), []byte("alloc and free and alloc again"))
	f.Fuzz(func(t *testing.T, limit uint32, ops []byte) {
		m := newModel(uint64(limit%(4<<20)) + Page)
		rnd := rand.New(rand.NewSource(int64(limit)))
		for _, op := range ops {
			if err := m.step(op, rnd.Uint64()>>(op>>3), rnd.Uint64()>>(op>>3)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.drain(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLongRuns(t *testing.T) {
	for more, seed := range testkit.Seeds(t, 12) {
		m := newModel(3<<20 + uint64(more)*Page)
		rnd := rand.New(rand.NewSource(int64(seed)))
		for i := range 1500 {
			op := byte(rnd.Intn(8))
			shift := rnd.Intn(50)
			if err := m.step(op, rnd.Uint64()>>shift, rnd.Uint64()>>shift); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
		}
		if err := m.drain(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
