package internode

import (
	"reflect"

	"mobula/internal/errs"
)

// since has the versions above MinVersion that added a message, by its type: of an envelope, or of what is inside. A message that is not here is of MinVersion. What is sent
// in place of a new message to a node that lacks it is up to who sends; the Encoder refuses it.
var since = map[reflect.Type]uint32{
	reflect.TypeFor[*PeerWords](): PeersTalk,
	reflect.TypeFor[*ToPeer]():    PeersTalk,
}

// lacks tells why a message is not for a node that speaks no more than a version; nil: it is.
func (e *Encoder) lacks(m Msg) error {
	added := e.since
	if added == nil {
		added = since
	}
	if len(added) == 0 {
		return nil
	}
	agreed := max(e.Agreed, MinVersion)
	for _, part := range []any{m, carried(m)} {
		if of := added[reflect.TypeOf(part)]; part != nil && of > agreed {
			return errs.New(errs.CodeVersion, "%v: a %T is of version %d, the nodes agreed on version %d", m.Kind(), part, of, agreed)
		}
	}
	return nil
}

// carried gives the message in an envelope that has one of several; nil: it is none.
func carried(m Msg) any {
	switch m := m.(type) {
	case *ToSched:
		return m.Msg
	case *ToStore:
		return m.Msg
	case *FromSched:
		return m.Msg
	case *FromStore:
		return m.Msg
	}
	return nil
}
