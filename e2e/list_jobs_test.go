package e2e

import (
	"os"
	"testing"

	"mobula"
)

// The list of jobs has every job that has not ended, with its driver and its counts, in the order of their numbers.
func TestJobsAreListed(t *testing.T) {
	ctx, cancel := limit(t)
	defer cancel()
	p := mustLaunch(t, nodeConfig{Dir: tempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: tempDir(t)})
	_, first := connect(t, ctx, p)
	c, second := connect(t, ctx, p)
	if v, err := add.Go(first, mobula.V(1.0), mobula.V(2.0)).Get(first); err != nil || v != 3 {
		t.Fatalf("%v, %v", v, err)
	}
	a, err := counterType.Spawn(second, mobula.V(1))
	must(t, err)
	if v, err := counterInc.Go(second, a, mobula.V(1)).Get(second); err != nil || v != 2 {
		t.Fatalf("an actor beside them: %v, %v", v, err)
	}
	page, err := c.ListJobs(second, mobula.Query{})
	must(t, err)
	if page.Total != 2 || len(page.Rows) != 2 || page.Rows[0].ID != "2" || page.Rows[1].ID != "1" {
		t.Fatalf("%+v", page)
	}
	if j := page.Rows[1]; j.PID != os.Getpid() || j.Submitted != 1 || j.Finished != 1 || j.Namespace != "default" {
		t.Errorf("%+v", j)
	}
	page, err = c.ListJobs(second, mobula.Query{Filters: []mobula.Filter{{Field: "submitted", Value: "1"}}})
	must(t, err)
	if page.Total != 1 || page.Rows[0].ID != "1" {
		t.Errorf("with a filter: %+v", page)
	}
}
