package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/mobulatest"
)

// The sample verifies order, count and sums of its rows itself.
func TestSetIndexSurvivesTheKillOfANode(t *testing.T) {
	python := mobulatest.Python(t, "cbor2", "cloudpickle", "dask.dataframe", "pyarrow")
	root, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	ctx, cancel := harness.Limit(t)
	defer cancel()
	partitions := harness.Size(40, 60)
	c := start(t, network(t, 3), "--store-size", fmt.Sprintf("%dMiB", harness.Size(64, 256)), "--cpus", "1")
	n := c.Nodes()
	ctx, d := connect(t, ctx, c)
	cmd := exec.CommandContext(ctx, python, filepath.Join(root, "samples", "python", "set_index.py"), "--json", "--address", n[0].Address,
		"--size", fmt.Sprintf("%dMiB", harness.Size(512, 2048)), "--partitions", fmt.Sprint(partitions))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "python"))
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	victim, err := mobula.Connect(ctx, n[2].Address) // its workers take seconds to start
	must(t, err)
	defer func() { _ = victim.Close(context.WithoutCancel(ctx)) }() // the node is gone by then
	harness.Eventually(t, ctx, "a part of the data is on the node that is killed", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("set_index ended without that node: %v\n%s%s", err, out.Bytes(), failed.Bytes())
		default:
		}
		s, err := victim.Status(ctx)
		must(t, err)
		return s.Store.Objects > partitions/8
	})
	before := finished(t, ctx, d)
	must(t, n[2].Kill(ctx))
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("set_index: %v\n%s%s", err, out.Bytes(), failed.Bytes())
		}
	case <-ctx.Done():
		t.Fatalf("set_index does not end: %s", failed.Bytes())
	}
	t.Logf("%d tasks had ended when the node was killed: %s", before, out.Bytes())
	var said map[string]float64
	must(t, json.Unmarshal(out.Bytes(), &said))
	for _, of := range []string{"store", "workers", "limit"} { // a program's own node has these
		if v, has := said[of]; has {
			t.Errorf("it says that %s is %v, which the nodes know and it does not", of, v)
		}
	}
}

// finished is how many tasks of all drivers have ended.
func finished(t *testing.T, ctx context.Context, c *mobula.Cluster) (n int) { //nolint:revive // t comes first
	t.Helper()
	s, err := c.Status(ctx)
	must(t, err)
	for _, j := range s.Jobs {
		n += int(j.Finished)
	}
	return n
}
