package mobula

import (
	"testing"

	"mobula/internal/codec"
	"mobula/wire"
)

// However many arguments a call has, and however large they may be inside a message, it can be sent.
func TestArgumentsFitTheirMessage(t *testing.T) {
	_, ctx, _ := startFake(t)
	n := wire.MessageValues/wire.InlineMax + 2
	var k call
	k.tc, k.err = taskOf(ctx)
	k.ctx, k.spec = ctx, &wire.TaskSpec{Args: make([]wire.Arg, n)}
	e := codec.Encoded{Size: wire.InlineMax, Inline: make([]byte, wire.InlineMax)}
	for i := range k.spec.Args {
		k.value(&k.spec.Args[i], &e)
	}
	if k.err != nil {
		t.Fatal(k.err)
	}
	inside := 0
	for _, a := range k.spec.Args {
		inside += len(a.Value.Data)
	}
	if inside > wire.MessageValues || len(k.large) == 0 {
		t.Errorf("%d bytes are in the message, %d values in the store", inside, len(k.large))
	}
	for _, h := range k.large {
		h.Release()
	}
}
