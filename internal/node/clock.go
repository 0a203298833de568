package node

import (
	"fmt"
	"os"
	"path/filepath"

	"mobula/internal/errs"
	"mobula/internal/machine"
	"mobula/internal/node/jobfile"
	"mobula/internal/safefs"
	"mobula/internal/steady"
)

// clockName is the file that says what the clock of a kept node is ahead of the machine's CLOCK_MONOTONIC, and in which run of the machine.
const clockName = "clock"

// clockOf begins the node's clock. Where jobs are left whose logs and drivers have times by the clock of the life before, in this run of the machine,
// that one goes on: else a wall clock that was set meanwhile would end their deadlines at once, or never.
func clockOf(dir string, keep bool) (steady.Clock, error) {
	if !keep {
		return steady.New(), nil
	}
	path, boot := filepath.Join(dir, clockName), machine.Boot()
	if b, err := os.ReadFile(path); err == nil && boot != "" && len((&jobfile.Dir{Path: dir}).Logged()) > 0 {
		var in string
		var offset int64
		if _, err := fmt.Sscan(string(b), &in, &offset); err == nil && in == boot && offset != 0 {
			return steady.Of(offset), nil
		}
	}
	c := steady.New()
	if err := safefs.Replace(path, fmt.Appendln(nil, boot, c.Offset())); err != nil {
		return c, errs.New(errs.CodeInvalid, "node directory: %v", err)
	}
	return c, nil
}
