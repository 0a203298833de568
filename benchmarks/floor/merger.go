package floor

import "encoding/binary"

// merger merges sorted runs of records: a binary heap over the runs' heads.
type merger struct {
	heads []head
}

type head struct {
	key  uint64
	tail uint16
	run  []byte
}

func (h *head) load() {
	h.key, h.tail = binary.BigEndian.Uint64(h.run), binary.BigEndian.Uint16(h.run[8:])
}

func (h *head) before(o *head) bool {
	return h.key < o.key || (h.key == o.key && h.tail < o.tail)
}

// add adds a run that is not empty.
func (m *merger) add(run []byte) {
	h := head{run: run}
	h.load()
	m.heads = append(m.heads, h)
	for i := len(m.heads) - 1; i > 0; {
		up := (i - 1) / 2
		if !m.heads[i].before(&m.heads[up]) {
			break
		}
		m.heads[i], m.heads[up] = m.heads[up], m.heads[i]
		i = up
	}
}

// next is the next record in order, valid until the runs' memory goes; nil at the end.
func (m *merger) next() []byte {
	if len(m.heads) == 0 {
		return nil
	}
	top := &m.heads[0]
	r := top.run[:RecordBytes:RecordBytes]
	if top.run = top.run[RecordBytes:]; len(top.run) > 0 {
		top.load()
	} else {
		n := len(m.heads) - 1
		m.heads[0] = m.heads[n]
		m.heads = m.heads[:n]
	}
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.heads); c++ {
			if m.heads[c].before(&m.heads[least]) {
				least = c
			}
		}
		if least == i {
			return r
		}
		m.heads[i], m.heads[least] = m.heads[least], m.heads[i]
		i = least
	}
}
