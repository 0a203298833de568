package shell

import (
	"os"
	"path/filepath"
	"testing"

	"mobula/gcs"
	"mobula/internal/testkit"
)

// A node that was its own control plane takes its names along when it becomes a server of a cluster, also if it is killed meanwhile.
func TestTheTablesOfANodeAloneAreTakenAlong(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		c := newCluster(t)
		dir := filepath.Join(c.dir, "1")
		srv, nc, tables := openTest(t, dir)
		for _, r := range []gcs.Record{homeRecord(1), actorOf(1, "hits"), gcs.NodeRecord{Home: 1, Epoch: 1}} {
			if a := tables.Do(t.Context(), gcs.Write{Record: r}); a.Err != nil || a.Conflict {
				t.Fatal(a)
			}
		}
		nc.Close()
		srv.Close()
		if killed { // after it has set them aside
			if err := setAside(dir); err != nil {
				t.Fatal(err)
			}
		}
		s := c.server(1, nil)
		ctx := testkit.Within(t)
		for bucket, want := range map[gcs.Bucket]int{gcs.Homes: 1, gcs.Actors: 1, gcs.Nodes: 0} {
			rows, err := s.Call(ctx, gcs.List{Bucket: bucket})
			if err != nil || len(rows) != want {
				t.Errorf("%s has %v, %v", bucket, rows, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, aloneDir)); !os.IsNotExist(err) {
			t.Errorf("what was set aside is there still: %v", err)
		}
	}
}
