package alloc

import (
	"errors"
	"testing"
)

func TestClasses(t *testing.T) {
	for size := uint64(0); size <= Large; size += 13 {
		r := Rounded(size)
		if r < size || r%Align != 0 {
			t.Fatalf("%d bytes rounded to %d", size, r)
		}
		if size > 1024 && size < Large && r*4 > size*5 {
			t.Fatalf("%d bytes take %d: more than a fifth is wasted", size, r)
		}
	}
	for i := range classes {
		n := slabBytes(uint8(i))
		if n&(n-1) != 0 || n%granule != 0 || n/uint64(classes[i]) < 8 {
			t.Errorf("class %d has slabs of %d bytes", classes[i], n)
		}
	}
}

func TestWarmIsReusedFirst(t *testing.T) {
	a := New(64 << 20)
	b, _ := a.Alloc(0, 1<<20, false)
	if got := a.Unbacked(b); len(got) != 1 || got[0] != b.Range() {
		t.Fatalf("a fresh extent is unbacked in %v", got)
	}
	a.Back(Owned{0, a.ExtendToStep(b.Range(), 8<<20)})
	if a.Backed() != 8<<20 || a.Warm() != 7<<20 {
		t.Fatalf("backed %d, warm %d after a step of 8 MiB", a.Backed(), a.Warm())
	}
	for range 7 {
		c, ok := a.Alloc(0, 1<<20, true)
		if !ok || len(a.Unbacked(c)) != 0 {
			t.Fatalf("no warm extent with %d bytes warm", a.Warm())
		}
	}
	if _, ok := a.Alloc(0, 1, true); ok {
		t.Fatal("warm block handed out with none left")
	}
	if err := a.Free(b); err != nil {
		t.Fatal(err)
	}
	if rs := a.Release(256<<10, 1<<30); len(rs) != 1 || rs[0].Size != 768<<10 || a.Warm() != 256<<10 {
		t.Fatalf("released %v, warm %d, want all but 256 KiB", rs, a.Warm())
	}
	if r, ok := a.FindUnbacked(64 << 20); !ok || r.Off != 256<<10 || r.Size != 768<<10 {
		t.Fatalf("lowest cold stretch is %v", r)
	}
}

func TestMisuseIsAnError(t *testing.T) {
	a := New(1 << 20)
	for _, b := range []Block{{}, {Off: 5, Size: Page}, {Size: Page}, {Off: 1 << 20, Size: Page}, {Size: 1 << 40}, {Off: ^uint64(0) - Page + 1, Size: Page},
		{Off: 64, Size: 64, Slab: true}, {Size: 65, Slab: true}} {
		if err := a.Free(b); !errors.Is(err, ErrBadBlock) {
			t.Errorf("free of %+v: %v", b, err)
		}
	}
	for _, b := range []Block{{}, {Off: 5, Size: Page}, {Off: 1 << 20, Size: Page}, {Off: ^uint64(0) - Page + 1, Size: Page}, {Slab: true},
		{Off: 1, Size: 64, Slab: true}, {Size: 100, Slab: true}, {Off: 1 << 20, Size: 64, Slab: true}, {Size: 1 << 40, Slab: true}} {
		if err := a.Restore(b); !errors.Is(err, ErrBadBlock) {
			t.Errorf("restore of %+v: %v", b, err)
		}
	}
	if a.Used() != 0 || a.Largest() != 1<<20 {
		t.Fatalf("misuse left %d used, largest %d", a.Used(), a.Largest())
	}
}

func BenchmarkSmall(b *testing.B) {
	a := New(1 << 30)
	var ring [1024]Block
	for i := 0; b.Loop(); i++ {
		k := &ring[i&1023]
		if k.Size != 0 {
			if err := a.Free(*k); err != nil {
				b.Fatal(err)
			}
		}
		*k, _ = a.Alloc(0, uint64(i*37)&16383, false)
	}
}

func BenchmarkLarge(b *testing.B) {
	a := New(4 << 30)
	var ring [1024]Block
	for i := 0; b.Loop(); i++ {
		k := &ring[i*7&1023]
		if k.Size != 0 {
			if err := a.Free(*k); err != nil {
				b.Fatal(err)
			}
		}
		*k, _ = a.Alloc(0, 64<<10+uint64(i*40503)&(1<<20-1), false)
	}
}
