package blobs

import "mobula/internal/errs"

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// validate counts anew what the core counts, and checks its bounds.
func (c *Core) validate(t fataler) {
	t.Helper()
	flying, places := 0, make(map[Place]bool)
	for _, f := range c.fetches {
		flying += len(f.flying)
		if places[f.place] {
			t.Fatalf("blob %v is fetched twice at a time", f.place.Hash)
		}
		places[f.place] = true
		if len(f.wants) == 0 && !f.storing {
			t.Fatalf("fetch %d goes on for nobody", f.number)
		}
		under := f.written
		for offset := range f.flying {
			under += f.chunkAt(offset)
		}
		for _, offset := range f.again {
			under += f.chunkAt(offset)
		}
		if under != f.next {
			t.Fatalf("fetch %d has %d bytes written, on their way or to be asked for once more, and asked for %d", f.number, under, f.next)
		}
	}
	if flying != c.flying || flying > Window {
		t.Fatalf("%d chunks are under way, it counts %d of at most %d", flying, c.flying, Window)
	}
}

var errInjected = errs.New(errs.CodeOutOfDisk, "injected")
