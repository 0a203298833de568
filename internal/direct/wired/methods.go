package wired

import "mobula/wire"

// methods gives the methods of a channel their numbers. One that has none takes the number of the one that has had its for longest, when there are none left.
type methods struct {
	last   *wire.TaskOptions
	lastNo uint32
	no     map[*wire.TaskOptions]uint32
	of     []*wire.TaskOptions // by number
	next   uint32
}

// number is that of a method; fresh: it has it from now on.
func (t *methods) number(o *wire.TaskOptions) (no uint32, fresh bool) {
	if o == t.last && o != nil {
		return t.lastNo, false
	}
	no, known := t.no[o]
	if !known {
		no = t.give(o)
	}
	t.last, t.lastNo = o, no
	return no, !known
}

func (t *methods) give(o *wire.TaskOptions) uint32 {
	if t.no == nil {
		t.no = make(map[*wire.TaskOptions]uint32)
	}
	no := t.next
	if int(no) < len(t.of) {
		delete(t.no, t.of[no])
		t.of[no] = o
	} else {
		t.of = append(t.of, o)
	}
	t.no[o] = no
	t.next = (no + 1) % wire.Methods
	return no
}
