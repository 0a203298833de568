package languages

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/mobulatest"
)

// A task of Go that makes an actor of Python on the third node and calls it.
var _ = mobula.Register1("e2e/tellOnThird", func(ctx context.Context, s string) (string, error) {
	a, err := tellers.Spawn(ctx, mobula.OnNode("3"))
	if err != nil {
		return "", err
	}
	return told.Go(ctx, a, mobula.V(s)).Get(ctx)
})

// A trace goes on over three nodes and both languages, and is one tree, in which nobody begins before who called it, though the nodes' clocks are
// apart.
func TestOneTraceOverThreeNodes(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	python := mobulatest.Python(t, "cbor2", "cloudpickle", "opentelemetry.trace")
	col := collecting(t)
	nodes := harness.StartNodesApart(t, 1, 1, 1)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, python, filepath.Join(root, "tests", traces+".py"), "hops", nodes[0].Address(), exe)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+root)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != `"HELLO"` {
		t.Fatalf("the driver says %q: %v\n%s", out, err, errs.String())
	}
	for _, n := range slices.Backward(nodes) {
		if err := n.Close(ctx); err != nil { // its last spans are exported
			t.Error(err)
		}
	}
	tr := oneTree(t, received(t, col))
	tr.want(t, "main > e2e/tellOnThird > py:helpers_of_traces.Teller.told > upper > inner > innermost")
	const slack = 50 * time.Millisecond // for the difference of clocks that was measured in a second
	for _, s := range tr.spans {
		up := tr.spans[string(s.ParentSpanId)]
		if up != nil && (s.StartTimeUnixNano+uint64(slack) < up.StartTimeUnixNano || s.EndTimeUnixNano > up.EndTimeUnixNano+uint64(slack)) && up.Name != "restart" {
			t.Errorf("%s is from %d to %d, and %s, which called it, from %d to %d", tr.path(s), s.StartTimeUnixNano, s.EndTimeUnixNano, tr.path(up), up.StartTimeUnixNano, up.EndTimeUnixNano)
		}
		for _, e := range s.Events {
			if e.TimeUnixNano+uint64(slack) < s.StartTimeUnixNano || e.TimeUnixNano > s.EndTimeUnixNano+uint64(slack) {
				t.Errorf("event %s of %s is at %d, not from %d to %d", e.Name, tr.path(s), e.TimeUnixNano, s.StartTimeUnixNano, s.EndTimeUnixNano)
			}
		}
	}
}
