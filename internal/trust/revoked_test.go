package trust

import (
	"errors"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

func TestWhatARevocationEnds(t *testing.T) {
	list := NewRevocations([]Revocation{
		{Serial: "a1", At: made, Why: "a lost laptop"},
		{Home: 3, Epoch: 4, At: made}, {Home: 3, Epoch: 2, At: made},
	})
	name := func(home, epoch int) Name {
		return Name{Cluster: "c", Role: Data, Home: ids.Home(home), Epoch: uint64(epoch)}
	}
	for _, c := range []struct {
		name   Name
		serial string
		text   string // empty: it counts
	}{
		{name(9, 1), "a1", "a lost laptop"},
		{name(9, 1), "a2", ""},
		{name(3, 1), "b", "node 3"}, {name(3, 4), "b", "node 3"},
		{name(3, 5), "b", ""}, {name(3, 5), "a1", "lost laptop"},
		{name(0, 1), "b", ""},
	} {
		err := list.Check(c.name, c.serial)
		if (err == nil) != (c.text == "") || err != nil && (!errors.Is(err, ErrRevoked) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%v, serial %s: %v, want %q", c.name, c.serial, err, c.text)
		}
	}
	var empty Revocations
	if err := empty.Check(name(0, 0), ""); err != nil {
		t.Errorf("an empty list: %v", err)
	}
	for _, r := range []Revocation{{}, {Home: 3}, {Serial: "a", Epoch: 1}} {
		if err := r.Check(); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
