package main

import (
	"fmt"
	"io"

	"mobula/internal/state"
)

// warn names the nodes that have not answered.
func (a *app) warn(w io.Writer, missing []state.Unreachable) {
	for _, m := range missing {
		fmt.Fprintf(w, "WARNING: what node %s has is missing: %s\n", oneLine(m.Node), oneLine(m.Why))
	}
}

// unreachable are the nodes that an answer names as missing.
func unreachable(answer any) []state.Unreachable {
	if x, ok := answer.(interface{ Missing() []state.Unreachable }); ok {
		return x.Missing()
	}
	return nil
}
