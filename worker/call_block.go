package worker

import "sync"

// callBlocks allocates calls that have come straight, some at a time: most live for less than a microsecond. User code that keeps the context of one keeps its block, so
// blocks have no calls with large arguments, and no call refers to the actor's instance.
type callBlocks struct{ pool sync.Pool }

// callBlock takes up 4 kB.
type callBlock struct {
	calls [18]call
	used  int
}

// blockCost is how much a call in a block takes of the credit at most.
const blockCost = 1 << 10

// next is a new call.
func (b *callBlocks) next() *call {
	block, _ := b.pool.Get().(*callBlock)
	if block == nil {
		block = new(callBlock)
	}
	cl := &block.calls[block.used]
	if block.used++; block.used < len(block.calls) {
		b.pool.Put(block)
	}
	return cl
}
