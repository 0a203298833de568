package shell

import (
	"encoding/binary"
	"errors"
	"fmt"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/remote"
)

// Versions are those of the payloads that a node speaks, from Min to Max.
type Versions struct{ Max, Min uint32 }

// agreed is the highest version that two nodes both speak.
func (v Versions) agreed(with Versions) uint32 { return min(v.Max, with.Max) }

// Why nodes do not talk.
var (
	ErrCluster = errors.New("remote: the node is of another cluster")
	ErrRefused = errors.New("remote: the other node refuses the connection") // and says why
)

// maxHello is the limit of the frame of one who is not known yet.
const maxHello = 1 << 10

// maxCluster is the limit of a cluster's name, in bytes.
const maxCluster = 255

// hello is what each side of a connection says first. Its layout outlives versions: bytes behind those known here are a later version's.
type hello struct {
	versions Versions
	cluster  string
	remote.Hello
}

const (
	helloMagic = "mobula\x00h"
	helloFixed = len(helloMagic) + 4 + 4 + 4 + 8 + 4 + 8 + 8 + 1 // up to the cluster's name
)

func (h *hello) encode() []byte {
	e := binary.LittleEndian
	b := append(make([]byte, 0, helloFixed+len(h.cluster)), helloMagic...)
	b = e.AppendUint32(b, h.versions.Max)
	b = e.AppendUint32(b, h.versions.Min)
	b = e.AppendUint32(b, uint32(h.From.Home))
	b = e.AppendUint64(b, h.From.Epoch)
	b = e.AppendUint32(b, uint32(h.To))
	b = e.AppendUint64(b, h.Knows)
	b = e.AppendUint64(b, h.Got)
	b = append(b, byte(len(h.cluster)))
	return append(b, h.cluster...)
}

func decodeHello(b []byte) (h hello, err error) {
	if len(b) < helloFixed || string(b[:len(helloMagic)]) != helloMagic || len(b) < helloFixed+int(b[helloFixed-1]) {
		return h, errs.New(errs.CodeProtocol, "a malformed hello of %d bytes", len(b))
	}
	e := binary.LittleEndian
	h.cluster = string(b[helloFixed : helloFixed+int(b[helloFixed-1])])
	b = b[len(helloMagic):]
	h.versions = Versions{Max: e.Uint32(b), Min: e.Uint32(b[4:])}
	h.From = remote.Life{Home: ids.Home(e.Uint32(b[8:])), Epoch: e.Uint64(b[12:])}
	h.To, h.Knows, h.Got = ids.Home(e.Uint32(b[20:])), e.Uint64(b[24:]), e.Uint64(b[32:])
	return h, nil
}

// mismatch says why a node with this hello cannot be talked with, if so.
func (h *hello) mismatch(cluster string, ours Versions) error {
	switch v := h.versions; {
	case h.cluster != cluster:
		return fmt.Errorf("%w: node %v is of %q, this one of %q", ErrCluster, h.From.Home, h.cluster, cluster)
	case v.agreed(ours) < max(v.Min, ours.Min):
		return errs.New(errs.CodeVersion, "node %v speaks versions %d to %d, this one %d to %d: use releases at most one apart", h.From.Home, v.Min, v.Max, ours.Min, ours.Max)
	case h.From.Epoch == 0:
		return errs.New(errs.CodeProtocol, "node %v says that it is of epoch 0", h.From.Home)
	}
	return nil
}
