//go:build !invariants

package worker

// loans are the stored arguments that a call reads in place.
type loans struct{}

func (*loans) lend(data []byte) []byte { return data }
func (*loans) giveBack()               {}
