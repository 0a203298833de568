package cluster

import "mobula/internal/ids"

// locality gives the free node that has most of the arguments' bytes: there the least has to be moved. The node that decides is preferred where none has
// more than it. Elsewhere too it is a preference only, which counts until the node is utilised above the threshold (hybrid), unless the bytes are many (HeavyArgs).
func locality(v *View, free set, d *Demand) ids.Home {
	best, most := v.Self, uint64(0)
	for _, h := range d.Args {
		if h.Node == v.Self {
			most = h.Bytes
		}
	}
	for _, h := range d.Args {
		if (h.Bytes > most || h.Bytes == most && best != v.Self && h.Node < best) && free.has(v, h.Node) {
			best, most = h.Node, h.Bytes
		}
	}
	return best
}

// bytesAt gives how many bytes of the arguments a node has.
func (d *Demand) bytesAt(id ids.Home) uint64 {
	for _, h := range d.Args {
		if h.Node == id {
			return h.Bytes
		}
	}
	return 0
}
