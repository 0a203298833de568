package trust

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"mobula/internal/errs"
)

func TestListsOfRevocationsAreMerged(t *testing.T) {
	a := []Revocation{{Home: 3, Epoch: 4, At: made, Why: "stolen"}, {Serial: "b2", At: made}}
	b := []Revocation{{Home: 3, Epoch: 2, At: made}, {Home: 1, Epoch: 7, At: made}, {Serial: "b2", At: made}, {Serial: "a1", At: made}}
	want := []Revocation{{Serial: "a1", At: made}, {Serial: "b2", At: made}, {Home: 1, Epoch: 7, At: made}, {Home: 3, Epoch: 4, At: made, Why: "stolen"}}
	for _, got := range [][]Revocation{Merged(a, b), Merged(b, a), Merged(a, b, a, nil)} {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("merged: %+v", got)
		}
	}
	if Merged() != nil {
		t.Error("of nothing comes something")
	}
}

func TestABundleThatCannotBeRead(t *testing.T) {
	good := Bundle{Form: 1, Cluster: "c", Number: 3}
	with := func(change func(*Bundle)) SignedBundle {
		b := good
		change(&b)
		body, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return SignedBundle{Body: body}
	}
	if b, err := with(func(*Bundle) {}).Read(); err != nil || b.Number != 3 {
		t.Fatalf("%+v, %v", b, err)
	}
	for _, c := range []struct {
		s    SignedBundle
		want error
	}{
		{SignedBundle{}, errs.ErrInvalid}, {SignedBundle{Body: []byte("{")}, errs.ErrInvalid}, {SignedBundle{Body: []byte("{}")}, errs.ErrInvalid},
		{with(func(b *Bundle) { b.Number = 0 }), errs.ErrInvalid}, {with(func(b *Bundle) { b.Cluster = "a/b" }), errs.ErrInvalid},
		{with(func(b *Bundle) { b.Form = BundleForm + 1 }), errs.ErrVersion},
	} {
		if _, err := c.s.Read(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.s.Body, err, c.want)
		}
	}
}
