package wire

import "bytes"

// Bounds of the tables that one connection keeps. A full table is emptied: then
// equal options may get a second pointer, which costs a slower comparison only.
const (
	maxInterned      = 512     // entries of a table
	maxInternedBytes = 1 << 10 // bytes of one entry; longer ones are not kept
)

// OptionsCache remembers the encodings of options by pointer: they are immutable. One is of one connection's
// sender, the zero value is ready, and a nil one is empty.
type OptionsCache struct {
	last    *TaskOptions
	lastEnc []byte
	m       map[*TaskOptions][]byte
}

func (c *OptionsCache) get(o *TaskOptions) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	if o == c.last {
		return c.lastEnc, true
	}
	enc, ok := c.m[o]
	if ok {
		c.last, c.lastEnc = o, enc
	}
	return enc, ok
}

func (c *OptionsCache) put(o *TaskOptions, enc []byte) {
	if c == nil || len(enc) > maxInternedBytes {
		return
	}
	if c.m == nil {
		c.m = make(map[*TaskOptions][]byte)
	} else if len(c.m) >= maxInterned {
		clear(c.m)
	}
	enc = bytes.Clone(enc)
	c.m[o] = enc
	c.last, c.lastEnc = o, enc
}

// interned gives equal bytes the same options, and equal short texts the same string.
type interned struct {
	lastRaw []byte
	last    *TaskOptions
	options map[string]*TaskOptions
	texts   map[string]string
}

func (t *interned) get(raw []byte) *TaskOptions {
	if t.last != nil && bytes.Equal(raw, t.lastRaw) {
		return t.last
	}
	o := t.options[string(raw)]
	if o != nil {
		t.last, t.lastRaw = o, append(t.lastRaw[:0], raw...)
	}
	return o
}

func (t *interned) put(raw []byte, o *TaskOptions) {
	if len(raw) > maxInternedBytes {
		return
	}
	if t.options == nil {
		t.options = make(map[string]*TaskOptions)
	} else if len(t.options) >= maxInterned {
		clear(t.options)
	}
	t.options[string(raw)] = o
	t.last, t.lastRaw = o, append(t.lastRaw[:0], raw...)
}

// text is for what repeats, as call sites do.
func (t *interned) text(raw []byte) string {
	if s, ok := t.texts[string(raw)]; ok {
		return s
	}
	s := string(raw)
	if len(s) > 256 {
		return s
	}
	if t.texts == nil {
		t.texts = make(map[string]string)
	} else if len(t.texts) >= maxInterned {
		clear(t.texts)
	}
	t.texts[s] = s
	return s
}
