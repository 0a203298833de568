package membership

import (
	"encoding/binary"
	"errors"
	"fmt"

	"mobula/internal/ids"
)

// MaxMeta is how many bytes the gossip carries for each member.
const MaxMeta = 512

// layout is the version of what Meta writes. A later one only appends, so that this release can read it.
const layout = 1

// ErrMeta is wrapped when a node cannot be described by metadata, or metadata describe no node.
var ErrMeta = errors.New("membership: metadata")

// Meta is the node as the gossip carries it: all but the gossip's own address.
func (n Node) Meta() ([]byte, error) {
	b := []byte{layout}
	b = binary.AppendUvarint(b, uint64(n.Home))
	b = binary.AppendUvarint(b, n.Epoch)
	b = append(b, byte(n.Role))
	b = binary.AppendUvarint(b, uint64(n.Protocol))
	for _, s := range []string{n.Identity, n.Release, n.Addresses.Message, n.Addresses.Transfer} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	if len(b) > MaxMeta {
		return nil, fmt.Errorf("%w: node %v needs %d bytes for its identity, release and addresses, of %d", ErrMeta, n.Home, len(b), MaxMeta)
	}
	return b, nil
}

// ParseMeta reads what Meta wrote, in this release or a later one.
func ParseMeta(b []byte) (Node, error) {
	if len(b) == 0 || len(b) > MaxMeta || b[0] < layout {
		return Node{}, fmt.Errorf("%w: %d bytes in no known layout", ErrMeta, len(b))
	}
	r := reader{left: b[1:]}
	var n Node
	home := r.number(ids.HomeBits)
	n.Home, n.Epoch = ids.Home(home), r.number(64)
	n.Role, n.Protocol = Role(r.byte()), uint32(r.number(32))
	for _, s := range []*string{&n.Identity, &n.Release, &n.Addresses.Message, &n.Addresses.Transfer} {
		*s = string(r.bytes(r.number(10)))
	}
	if r.bad || n.Epoch == 0 {
		return Node{}, fmt.Errorf("%w: %d bytes that are cut short or no node", ErrMeta, len(b))
	}
	return n, nil
}

// reader takes values from the front of bytes. Once they do not fit it is bad, and gives zeros.
type reader struct {
	left []byte
	bad  bool
}

// number takes a number of at most so many bits.
func (r *reader) number(bits int) uint64 {
	v, n := binary.Uvarint(r.left)
	if r.bad || n <= 0 || bits < 64 && v>>bits != 0 {
		r.bad = true
		return 0
	}
	r.left = r.left[n:]
	return v
}

func (r *reader) byte() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *reader) bytes(n uint64) []byte {
	if r.bad || n > uint64(len(r.left)) {
		r.bad = true
		return nil
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}
