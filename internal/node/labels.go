package node

import (
	"maps"
	"runtime"

	"mobula/internal/ids"
	"mobula/internal/labels"
)

// labels are the node's: those that every node has, and its own.
func (c Config) labels(home ids.Home) map[string]string {
	all := map[string]string{labels.NodeID: home.String(), labels.OS: runtime.GOOS, labels.Arch: runtime.GOARCH}
	maps.Copy(all, c.Labels)
	return all
}
