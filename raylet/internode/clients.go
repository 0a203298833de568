package internode

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/protofield"
	"mobula/wire"
)

// The messages that carry those of the local protocol are by hand: they are on a task's path.

// OnlyReports tells whether a payload has nothing but workers' reports of tasks that have ended.
func OnlyReports(payload []byte) bool {
	kind, body, rest, err := wire.Cut(payload, payload)
	if err != nil || Kind(kind) != KindFromClients || len(rest) > 0 {
		return false
	}
	only := true
	report := func(f protofield.Field) error {
		for b := f.B; f.Num == 2 && len(b) > 0; {
			kind, _, rest, err := wire.Cut(f.B, b)
			if err != nil {
				return err
			}
			only, b = only && wire.Kind(kind) == wire.KindDone, rest
		}
		return nil
	}
	err = protofield.Each(body, func(f protofield.Field) error {
		if f.Num != 2 {
			return nil
		}
		return protofield.Each(f.B, report)
	})
	return only && err == nil
}

func (e *Encoder) appendToClients(b []byte, m *ToClients) ([]byte, error) {
	return e.clients(b, m.Job, m.Items)
}

func (e *Encoder) appendFromClients(b []byte, m *FromClients) ([]byte, error) {
	return e.clients(b, m.Job, m.Items)
}

func (e *Encoder) clients(b []byte, job ids.JobID, items []ClientMsgs) ([]byte, error) {
	b = protofield.PutUint(b, 1, uint64(job))
	for i := range items {
		var item, msgs int
		b, item = protofield.Open(b, 2)
		b = protofield.PutUint(b, 1, uint64(items[i].Client))
		b, msgs = protofield.Open(b, 2)
		for _, m := range items[i].Msgs {
			var err error
			if b, err = e.local.Append(b, m); err != nil {
				return nil, errs.New(errs.CodeInvalid, "client %v: %s", items[i].Client, errs.From(err).Msg)
			}
		}
		b = protofield.Shut(protofield.Shut(b, msgs), item)
	}
	return b, nil
}

func (d *Decoder) readToClients(b []byte, m *ToClients) error {
	return d.clients(b, &m.Job, &m.Items, passOn)
}

func (d *Decoder) readFromClients(b []byte, m *FromClients) error {
	return d.clients(b, &m.Job, &m.Items, d.local.Messages)
}

// passOn is for the node of a worker, which does not read what the owner says to that.
func passOn(msgs []wire.Msg, b []byte) ([]wire.Msg, error) {
	if len(b) == 0 {
		return msgs, nil
	}
	var x *wire.Encoded
	if len(msgs) > 0 { // the field came in two halves
		x = msgs[0].(*wire.Encoded)
	}
	x, err := wire.PassOn(x, b)
	return []wire.Msg{x}, err
}

func (d *Decoder) clients(b []byte, job *ids.JobID, items *[]ClientMsgs, read func([]wire.Msg, []byte) ([]wire.Msg, error)) error {
	return protofield.Each(b, func(f protofield.Field) (err error) {
		switch f.Num {
		case 1:
			*job = ids.JobID(f.N)
		case 2:
			err = clientMsgs(f.B, protofield.More(f, items), read)
		}
		return err
	})
}

func (e *Encoder) appendPeerWords(b []byte, m *PeerWords) ([]byte, error) {
	b = protofield.PutUint(b, 1, uint64(m.From))
	b = protofield.PutUint(b, 2, uint64(m.To))
	b, at := protofield.Open(b, 3)
	for _, w := range m.Msgs {
		var err error
		if b, err = e.local.Append(b, w); err != nil {
			return nil, errs.New(errs.CodeInvalid, "job %v: %s", m.From, errs.From(err).Msg)
		}
	}
	return protofield.Shut(b, at), nil
}

func (d *Decoder) readPeerWords(b []byte, m *PeerWords) error {
	return protofield.Each(b, func(f protofield.Field) (err error) {
		switch f.Num {
		case 1:
			m.From = ids.JobID(f.N)
		case 2:
			m.To = ids.JobID(f.N)
		case 3:
			m.Msgs, err = d.local.Messages(m.Msgs, f.B)
		}
		return err
	})
}

func clientMsgs(b []byte, m *ClientMsgs, read func([]wire.Msg, []byte) ([]wire.Msg, error)) error {
	return protofield.Each(b, func(f protofield.Field) (err error) {
		switch f.Num {
		case 1:
			m.Client = ids.ClientID(f.N)
		case 2:
			m.Msgs, err = read(m.Msgs, f.B)
		}
		return err
	})
}
