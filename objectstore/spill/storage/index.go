package storage

import (
	"context"
	"fmt"

	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
)

// maxIndex bounds the memory that a file's header can ask for.
const maxIndex = 1 << 30

// Index reads which objects a file holds. A damaged file gives spill.ErrCorrupt.
func Index(ctx context.Context, s Storage, file uint64) (format.Header, []format.Entry, error) {
	page := make([]byte, format.Page)
	if _, err := s.Read(ctx, file, 0, page); err != nil {
		return format.Header{}, nil, err
	}
	h, err := format.DecodeHeader(page)
	if err == nil && h.IndexLen() > maxIndex {
		err = fmt.Errorf("index of %d bytes: %w", h.IndexLen(), format.ErrFormat)
	}
	if err != nil {
		return h, nil, fmt.Errorf("spill file %d: %w: %w", file, spill.ErrCorrupt, err)
	}
	index := make([]byte, h.IndexLen())
	if _, err := s.Read(ctx, file, h.IndexOff, index); err != nil {
		return h, nil, err
	}
	entries, err := format.DecodeIndex(index, h)
	if err != nil {
		return h, nil, fmt.Errorf("spill file %d: %w: %w", file, spill.ErrCorrupt, err)
	}
	return h, entries, nil
}
