package node

import (
	"path/filepath"
	"strings"

	"mobula/internal/node/jobfile"
	"mobula/internal/safefs"
	"mobula/objectstore/index"
	storeshell "mobula/objectstore/shell"
)

// sweepSegments removes what killed nodes of this user left in shared memory, whatever their directories were.
func (st *storeShell) sweepSegments() {
	own := st.segmentName()
	removed, err := storeshell.SweepDead(st.cfg.StoreDir, segmentPrefix(), func(o index.Owner) bool {
		return segmentPrefix()+o.Node == own || expected(o)
	})
	if err != nil {
		st.cfg.Logger.Warn("what killed nodes left in shared memory could not all be removed", "dir", st.cfg.StoreDir, "err", err)
	}
	for _, path := range removed {
		st.cfg.Logger.Info("the segment of a killed node was removed", "path", path)
	}
}

// expected tells whether a dead node may be started again and go on: its directory is there, it is its own, and has jobs.
func expected(o index.Owner) bool {
	if o.Dir == "" {
		return false
	}
	b, err := safefs.ReadFile(filepath.Join(o.Dir, identityName))
	return err == nil && strings.TrimSpace(string(b)) == o.Node && len((&jobfile.Dir{Path: o.Dir}).Logged()) > 0
}
