package errs

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"mobula/internal/ids"
)

// missing has a reference, as far as this test's References know.
type missing struct {
	Which uint32
	live  any
}

func (e *missing) Error() string { return fmt.Sprintf("%d is missing", e.Which) }

func (e *missing) MarshalBinary() ([]byte, error) { return []byte{byte(e.Which)}, nil }

func (e *missing) UnmarshalBinary(b []byte) error {
	e.Which = uint32(b[0])
	return nil
}

type missingRefs struct{}

func (missingRefs) Find(v reflect.Value) ([]ids.ObjectID, error) {
	n := v.Addr().Interface().(*missing).Which
	if n == 13 {
		return nil, errors.New("it was released")
	}
	return []ids.ObjectID{numbered(n)}, nil
}

func (missingRefs) Attach(v reflect.Value, held any) error {
	v.Addr().Interface().(*missing).live = held
	return nil
}

func (missingRefs) LeftOut(reflect.Type) error { return nil }

func numbered(n uint32) ids.ObjectID { return ids.ObjectID{Index: n} }

func init() { RegisterType[*missing]("test/missing", missingRefs{}) }

func TestReferencesInAnErrorAreNamedAndHeld(t *testing.T) {
	sent := From(fmt.Errorf("both: %w", errors.Join(&missing{Which: 1}, New(CodeStoreFull, "full"), &missing{Which: 2})))
	if got := sent.AllRefs(); !slices.Equal(got, []ids.ObjectID{numbered(1), numbered(2)}) {
		t.Fatalf("it names %v", got)
	}
	var m *missing
	if !errors.As(error(sent), &m) || m.live != nil {
		t.Errorf("before anything holds them: %+v", m)
	}
	var given []ids.ObjectID
	got := sent.Hold(func(refs []ids.ObjectID) any {
		given = refs
		return "held"
	})
	if !errors.As(error(got), &m) || m.Which != 1 || m.live != "held" || len(given) != 2 {
		t.Errorf("held, %v: %+v", given, m)
	}
	if got.Error() != sent.Error() || !errors.Is(got, ErrStoreFull) || sent.Cause[0].held != nil {
		t.Errorf("the copy is %v, of %v", got, sent)
	}
	again := From(fmt.Errorf("passed on: %w", error(got)))
	if bare := again.Bare(); !slices.Equal(bare.AllRefs(), sent.AllRefs()) {
		t.Errorf("passed on it names %v", bare.AllRefs())
	} else if m = nil; !errors.As(error(bare), &m) || m.live != nil {
		t.Errorf("for others it holds %+v", m)
	}
	plain := New(CodeStoreFull, "full")
	if plain.Bare() != plain || plain.Hold(func([]ids.ObjectID) any { t.Error("there is nothing to hold"); return nil }) != plain {
		t.Error("an error without references was copied")
	}
	if e := From(&missing{Which: 13}); e.Code != CodeUnknown || e.Data != nil {
		t.Errorf("one whose reference names nothing travels as %+v", e)
	}
	if (*Error)(nil).AllRefs() != nil {
		t.Error("nil has references")
	}
}
