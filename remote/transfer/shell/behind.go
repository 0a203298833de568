package shell

import "mobula/remote/transfer"

// behind puts chunks into cold rooms beside the goroutine that reads them, one at a time: to bring the memory of a chunk takes as long as to decrypt it.
// What comes after a chunk is told to the core after it.
type behind struct {
	buffers [2][]byte  // in turn: one is read into, the other one put in place
	next    int        // of buffers
	pending chan error // nil: no chunk is being put in place
}

// buffer has room for a chunk until begin is called twice.
func (b *behind) buffer() []byte {
	if b.buffers[b.next] == nil {
		b.buffers[b.next] = make([]byte, transfer.ChunkSize)
	}
	return b.buffers[b.next]
}

// begin has the chunk in the buffer put in place; wait was called before.
func (b *behind) begin(put func() error) {
	b.next = 1 - b.next
	done := make(chan error, 1)
	b.pending = done
	go func() { done <- put() }()
}

// wait gives how the chunk before was put in place.
func (b *behind) wait() error {
	if b.pending == nil {
		return nil
	}
	err := <-b.pending
	b.pending = nil
	return err
}
