package spec

import "testing"

func TestKeysAreWrittenAsPythonWritesThem(t *testing.T) {
	for want, k := range map[string]Key{
		"x": K("x"), "3": Int(3), "-1": Int(-1), "('x', 0, 1)": K("x", 0, 1), "('x',)": Tuple(K("x")), "()": Tuple(),
		"('x', ('y', 2), 3)": Tuple(K("x"), K("y", 2), Int(3)), `('it\'s', '\\')`: Tuple(K("it's"), K(`\`)),
	} {
		if got := k.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestKeysAreEqualWhereTheirPartsAre(t *testing.T) {
	if K("x", 0, 1) != Tuple(K("x"), Int(0), Int(1)) {
		t.Error("a name with indices is the tuple of them")
	}
	keys := []Key{{}, K("1"), Int(1), Tuple(K("1")), Tuple(Int(1)), K("(1,)"), K("a', 'b"), Tuple(K("a', 'b")), Tuple(K("a"), K("b")), Tuple(Tuple(K("a")), K("b"))}
	for i, a := range keys {
		for _, b := range keys[i+1:] {
			if a == b {
				t.Errorf("%v and %v are one key", a, b)
			}
		}
	}
}
