package shell

import (
	"time"

	"mobula/internal/ids"
	"mobula/objectstore"
)

const mib = 1 << 20

var root = ids.RootTask(1, 1)

func task(n int) ids.TaskID  { return ids.Derive(root, uint64(n)) }
func put(n int) ids.ObjectID { return root.Put(uint32(n)) }

func jobObject(job ids.JobID, n int) ids.ObjectID { return ids.RootTask(job, 1).Put(uint32(n)) }

// testConfig is small enough that little work fills it.
func testConfig(limit uint64) objectstore.Config {
	cfg := objectstore.DefaultConfig(limit)
	cfg.ReserveStep = 1 << 20
	cfg.Patience = 2 * time.Second
	cfg.WarmBytes = 64 << 10
	return cfg
}
