package outlet

import "mobula/wire"

// Outlet is the way to one client. Push queues a message, in order; Flush lets what is
// queued go. Neither blocks, and both may be called from several goroutines.
type Outlet interface {
	Push(m wire.Msg)
	Flush()
	Close()
}

// Receipt is called in its turn among a client's messages, when those before it are on their way and no more than the soft
// backlog waits to be written. A client that is gone has it called never.
type Receipt func()

// Kind is none: it is not sent.
func (Receipt) Kind() wire.Kind { return 0 }

func isReceipt(m wire.Msg) bool {
	_, ok := m.(Receipt)
	return ok
}
