package shell

import (
	"strings"
	"testing"

	"mobula/graph/run"
	"mobula/internal/client"
	"mobula/wire"
)

// No program can register a function of this name.
func TestGraphsAreOfTheRuntimesOwnFunctions(t *testing.T) {
	if f := new(Host).Function(); f.Name != run.Func || !strings.HasPrefix(f.Name, wire.SystemPrefix) {
		t.Errorf("graphs are of the function %q", f.Name)
	}
}

// Events for the core do not change when the buffer for results is reused.
func TestResultsAreToldInTheirOrder(t *testing.T) {
	results := []*wire.Result{{Size: 1}, {Size: 2}}
	buf := []client.Watched{{Token: 7, Result: results[0]}, {Token: 3, Result: results[1]}}
	ev := resolved(buf)
	clear(buf)
	want := []run.Result{{Task: 7, Result: results[0]}, {Task: 3, Result: results[1]}}
	if len(ev.Of) != 2 || ev.Of[0] != want[0] || ev.Of[1] != want[1] {
		t.Errorf("told %+v, want %+v", ev.Of, want)
	}
}
