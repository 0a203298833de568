package cluster

import (
	"math/rand/v2"
	"slices"

	"mobula/internal/ids"
)

// Request is a demand that came from another node.
type Request struct {
	Demand
	Tried []ids.Home // the nodes that it was sent to before, which each named the next
}

// Spillback answers a node that has sent a demand here: Here, if it can be taken; else There, a node that was not tried yet; or Wait, where there is
// none or it was sent on often enough. Then it waits where it came from. What can be taken is taken, though another node might be better: the sender has chosen.
func Spillback(v *View, r Request, cfg Config, rnd *rand.Rand) Decision {
	if i, known := v.find(v.Self); known && v.Nodes[i].able(&r.Shape) && v.Nodes[i].free(&r.Shape) {
		return v.at(v.Self)
	}
	d := place(v, &r.Demand, append(slices.Clip(r.Tried), v.Self), cfg, rnd)
	if d.Verdict == There && len(r.Tried) >= cfg.MaxSpillbacks {
		return Decision{Verdict: Wait}
	}
	return d
}
