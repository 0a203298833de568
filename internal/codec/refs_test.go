package codec

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// handle is a reference as package mobula has them.
type handle struct {
	id   ids.ObjectID
	live bool
}

func (h handle) MarshalCBOR() ([]byte, error) { return AppendRef(nil, h.id, TagRef), nil }

func (h *handle) UnmarshalCBOR(b []byte) (err error) {
	h.id, _, err = ParseRef(b)
	return err
}

type binds struct{ got []ids.ObjectID }

func (b *binds) Bind(id ids.ObjectID, _ uint64) (any, error) {
	b.got = append(b.got, id)
	return handle{id: id, live: true}, nil
}

func refRegistry() *Registry {
	return NewRegistry(Refs{
		Is: func(t reflect.Type) bool { return t == reflect.TypeFor[handle]() },
		ID: func(v reflect.Value) (ids.ObjectID, error) { return v.Interface().(handle).id, nil },
		Attach: func(v reflect.Value, b Binder) error {
			h, err := b.Bind(v.Interface().(handle).id, TagRef)
			if err == nil {
				v.Set(reflect.ValueOf(h))
			}
			return err
		},
		Any: func(id ids.ObjectID, tag uint64, b Binder) (any, error) { return b.Bind(id, tag) },
	})
}

func ref(n uint32) handle { return handle{id: ids.ObjectID{Task: ids.TaskID{1}, Index: n}} }

type holder struct {
	One  handle
	List []handle
	Map  map[string]handle
	Ptr  *handle
	Keys map[handle2]int
	Any  any
	Self *holder
	Fix  [2]handle
}

type handle2 struct{ N int }

func TestReferencesAreFoundAndBound(t *testing.T) {
	r := refRegistry()
	p := ref(5)
	v := holder{One: ref(1), List: []handle{ref(2), ref(3)}, Map: map[string]handle{"m": ref(4)}, Ptr: &p,
		Any: []any{ref(6), map[string]any{"x": ref(7)}}, Self: &holder{One: ref(8), List: []handle{ref(9)}}, Fix: [2]handle{ref(10), ref(11)}}
	e, err := Of[holder](r).Encode(&v, nil, inlineMax)
	if err != nil {
		t.Fatal(err)
	}
	indexes := func(list []ids.ObjectID) (out []uint32) {
		for _, id := range list {
			if !id.IsZero() && id.Index != 0 {
				out = append(out, id.Index)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	want := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	if got := indexes(e.Refs); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	b := &binds{}
	got, err := Of[holder](r).Decode(e.data(t), false, b)
	if err != nil {
		t.Fatal(err)
	}
	if bound := indexes(b.got); !slices.Equal(bound, want) {
		t.Errorf("bound %v, want %v", bound, want)
	}
	for name, h := range map[string]handle{"One": got.One, "List": got.List[1], "Map": got.Map["m"], "Ptr": *got.Ptr, "Self": got.Self.List[0],
		"Fix": got.Fix[1], "Any": got.Any.([]any)[0].(handle), "nested Any": got.Any.([]any)[1].(map[string]any)["x"].(handle)} {
		if !h.live {
			t.Errorf("%s: %v was not bound", name, h)
		}
	}
}

// sealed encodes itself, with a reference that no field shows.
type sealed struct {
	ref  handle
	more bool
}

func (s sealed) MarshalCBOR() ([]byte, error) {
	if !s.more {
		return []byte{0xf6}, nil
	}
	return s.ref.MarshalCBOR()
}

// A reference that is written unseen would be held by nobody: it is refused by name.
func TestReferencesInWhatEncodesItself(t *testing.T) {
	type parts struct {
		Ref  handle
		List []sealed
		Any  any
	}
	hides := sealed{ref(2), true}
	for name, c := range map[string]struct {
		v  parts
		ok bool
	}{
		"none":         {parts{Ref: ref(1), List: []sealed{{}}, Any: sealed{}}, true},
		"in a list":    {parts{Ref: ref(1), List: []sealed{{}, hides}}, false},
		"in an any":    {parts{Ref: ref(1), Any: map[string]any{"a": []any{hides}}}, false},
		"by a pointer": {parts{Ref: ref(1), Any: &hides}, false},
	} {
		r := refRegistry()
		e, err := Of[parts](r).Encode(&c.v, nil, inlineMax)
		if c.ok && (err != nil || len(e.Refs) != 1) || !c.ok && !errors.Is(err, errs.ErrNotEncodable) {
			t.Errorf("%s: %v, %v", name, e.Refs, err)
		}
	}
	r := refRegistry()
	if _, err := Of[sealed](r).Encode(&hides, nil, inlineMax); !errors.Is(err, errs.ErrNotEncodable) {
		t.Errorf("alone: %v", err)
	}
	var in any = hides
	if _, err := Of[any](r).Encode(&in, nil, inlineMax); !errors.Is(err, errs.ErrNotEncodable) {
		t.Errorf("as any: %v", err)
	}
}

func TestTypesWithoutReferencesAreNotWalked(t *testing.T) {
	r := refRegistry()
	for _, c := range []struct {
		p    *Plan
		want bool
	}{
		{r.PlanOf(reflect.TypeFor[point]()), true}, // it has an any
		{r.PlanOf(reflect.TypeFor[job2]()), false},
		{r.PlanOf(reflect.TypeFor[[]holder]()), true},
		{r.PlanOf(reflect.TypeFor[map[string][]int]()), false},
		{r.PlanOf(reflect.TypeFor[handle]()), true},
		{r.PlanOf(reflect.TypeFor[float64]()), false},
		{r.PlanOf(reflect.TypeFor[any]()), true},
	} {
		if got := c.p.MayHoldRefs(); got != c.want {
			t.Errorf("%s: may hold references %v, want %v", c.p.Name(), got, c.want)
		}
	}
}

type job2 struct {
	ID   int
	Tags map[string][]string
}

func TestReferenceAlone(t *testing.T) {
	r := refRegistry()
	v := ref(3)
	e, err := Of[handle](r).Encode(&v, nil, inlineMax)
	if err != nil || len(e.Refs) != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	got, err := Of[handle](r).Decode(e.data(t), false, &binds{})
	if err != nil || !got.live || got.id != v.id {
		t.Errorf("got %+v, %v", got, err)
	}
	if a, err := Of[any](r).Decode(e.data(t), false, &binds{}); err != nil || !a.(handle).live {
		t.Errorf("as any: %+v, %v", a, err)
	}
}

func TestMalformedReferences(t *testing.T) {
	good := AppendRef(nil, ref(1).id, TagRef)
	for _, b := range [][]byte{nil, good[:10], append(slices.Clone(good), 0), append([]byte{0xd9, 0, 1}, good[3:]...)} {
		if _, _, err := ParseRef(b); !errors.Is(err, errs.ErrNotDecodable) {
			t.Errorf("% x: %v, want ErrNotDecodable", b, err)
		}
	}
	r := refRegistry()
	meta := Header{Codec: CBOR, Name: "any"}.Append(nil)
	if _, err := Of[any](r).Decode(wire.Value{Meta: meta, Data: append([]byte{0x81}, append([]byte{0xd9, 0x6d, 0x6f, 0x41}, 1)...)}, false, &binds{}); !errors.Is(err, errs.ErrNotDecodable) {
		t.Errorf("a short reference inside a value: %v", err)
	}
}

// What is encoded elsewhere, such as an error, has its references found and bound all the same.
func TestReferencesOfWhatIsEncodedElsewhere(t *testing.T) {
	type part struct {
		Ref handle
		On  map[string][]handle
		Any any
		No  chan int `cbor:"-"`
	}
	type plain struct{ N int }
	r := refRegistry()
	id := func(n uint32) ids.ObjectID { return ids.ObjectID{Index: n} }
	v := &part{Ref: handle{id: id(1)}, On: map[string][]handle{"a": {{id: id(2)}}}, Any: handle{id: id(3)}}
	refs, err := r.Refs(reflect.ValueOf(v).Elem())
	if want := []ids.ObjectID{id(1), id(2), id(3)}; err != nil || !slices.Equal(refs, want) {
		t.Fatalf("found %v (%v), want %v", refs, err, want)
	}
	b := new(binds)
	if err := r.Attach(reflect.ValueOf(v).Elem(), b); err != nil || !v.Ref.live || !v.On["a"][0].live || len(b.got) < 2 {
		t.Errorf("bound %v (%v): %+v", b.got, err, v)
	}
	if refs, err := r.Refs(reflect.ValueOf(&plain{}).Elem()); err != nil || refs != nil {
		t.Errorf("of one without: %v, %v", refs, err)
	}
	if err := r.Attach(reflect.ValueOf(&plain{}).Elem(), b); err != nil {
		t.Error(err)
	}
}
