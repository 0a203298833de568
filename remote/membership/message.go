package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"mobula/internal/ids"
	"mobula/remote"
)

// MaxLoad is how large a load may be, in bytes: a packet of 1,400 holds it, with all that is around it.
const MaxLoad = 1000

// ErrMessage is wrapped when the gossip has a message that is none of those below: garbage, or of a later release.
var ErrMessage = errors.New("membership: message")

// Load is what a node said of its load. The bytes are for others to read.
type Load struct {
	Life    remote.Life
	Version uint64 // grows with each load of a life, from 1
	Bytes   []byte
}

// Goodbye is what a node says when it ends in order.
type Goodbye struct{ Life remote.Life }

// The kinds of messages.
const (
	kindLoad    = 1
	kindGoodbye = 2
)

// Message is the load as the gossip carries it.
func (l Load) Message() []byte {
	b := head(kindLoad, l.Life, len(l.Bytes))
	b = binary.AppendUvarint(b, l.Version)
	return append(b, l.Bytes...)
}

// Message is the goodbye as the gossip carries it.
func (g Goodbye) Message() []byte { return head(kindGoodbye, g.Life, 0) }

func head(kind byte, l remote.Life, more int) []byte {
	b := append(make([]byte, 0, frame+more), kind)
	b = binary.AppendUvarint(b, uint64(l.Home))
	return binary.AppendUvarint(b, l.Epoch)
}

// ParseMessage reads a Load or a Goodbye. A load's bytes are a copy.
func ParseMessage(b []byte) (any, error) {
	r := reader{left: b}
	kind := r.byte()
	home := r.number(ids.HomeBits)
	l := remote.Life{Home: ids.Home(home), Epoch: r.number(64)}
	var m any
	switch kind {
	case kindLoad:
		load := Load{Life: l, Version: r.number(64)}
		if len(r.left) > MaxLoad || load.Version == 0 {
			r.bad = true
		}
		load.Bytes = slices.Clone(r.left)
		m = load
	case kindGoodbye:
		m = Goodbye{Life: l}
	default:
		return nil, fmt.Errorf("%w: of kind %d", ErrMessage, kind)
	}
	if r.bad || l.Epoch == 0 {
		return nil, fmt.Errorf("%w: %d bytes of kind %d that are cut short or too long", ErrMessage, len(b), kind)
	}
	return m, nil
}
