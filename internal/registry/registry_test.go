package registry

import (
	"context"
	"slices"
	"strings"
	"testing"

	"mobula/wire"
)

func body(context.Context, *Call) ([]Output, any, error) { return nil, nil, nil }

// empty takes out what an earlier test registered.
func empty() {
	table.mu.Lock()
	defer table.mu.Unlock()
	table.byName = nil
}

func TestRegisterLookupList(t *testing.T) {
	empty()
	Register(&Function{Name: "t/b", Signature: 2, Kind: wire.TaskActorCall, Invoke: body})
	Register(&Function{Name: "t/a", Signature: 1, Invoke: body})
	f, ok := Lookup("t/b")
	if !ok || f.Signature != 2 || f.Kind != wire.TaskActorCall {
		t.Fatalf("got %+v, %v", f, ok)
	}
	if _, ok := Lookup("t/none"); ok {
		t.Error("found what was not registered")
	}
	if got := List(); !slices.Equal(got, []wire.FuncInfo{{Name: "t/a", Signature: 1}, {Name: "t/b", Signature: 2}}) {
		t.Errorf("got %v", got)
	}
	if got := Names(); got != "t/a, t/b" {
		t.Errorf("got %q", got)
	}
}

func TestMistakesOfTheProgramPanic(t *testing.T) {
	empty()
	Register(&Function{Name: "t/twice", Invoke: body})
	for name, f := range map[string]*Function{`"t/twice"`: {Name: "t/twice", Invoke: body}, "needs a name": {Invoke: body}, "and a body": {Name: "t/none"},
		"are Python's": {Name: "py:t.f", Invoke: body}} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.Contains(p, name) {
					t.Errorf("%s: panicked with %q", name, p)
				}
			}()
			Register(f)
		}()
	}
}
