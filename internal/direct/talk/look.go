package talk

import (
	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Underway is a call that goes straight and has not ended, as its process says when it is asked.
type Underway struct {
	Spec   *wire.TaskSpec
	Known  bool // the owner was told of it, and does not know where it is
	Client ids.ClientID
	*direct.Underway
}

// Came is what a call that went straight has come to, and of which the owner was not told.
type Came struct {
	Spec  *wire.TaskSpec
	Bytes int64
	Err   *errs.Error
}
