package node

import (
	"path/filepath"
	"strings"

	"mobula/internal/safefs"
	"mobula/objectstore/index"
	storeshell "mobula/objectstore/shell"
)

// sweepSegments removes what killed nodes of this user left in shared memory, whatever their directories were.
func (n *Node) sweepSegments() {
	own := n.segmentName()
	removed, err := storeshell.SweepDead(n.cfg.StoreDir, segmentPrefix(), func(o index.Owner) bool {
		return segmentPrefix()+o.Node == own || expected(o)
	})
	if err != nil {
		n.cfg.Logger.Warn("what killed nodes left in shared memory could not all be removed", "dir", n.cfg.StoreDir, "err", err)
	}
	for _, path := range removed {
		n.cfg.Logger.Info("the segment of a killed node was removed", "path", path)
	}
}

// expected tells whether a dead node may be started again and go on: its directory is there, it is its own, and has jobs.
func expected(o index.Owner) bool {
	if o.Dir == "" {
		return false
	}
	b, err := safefs.ReadFile(filepath.Join(o.Dir, identityName))
	return err == nil && strings.TrimSpace(string(b)) == o.Node && len(loggedJobs(o.Dir)) > 0
}
