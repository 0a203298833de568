package shell

import (
	"math"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"mobula/graph/run"
	"mobula/internal/errs"
)

// decoding takes as many keys as there are; the request's own length bounds them.
var decoding = sync.OnceValues(cbor.DecOptions{MaxArrayElements: math.MaxInt32}.DecMode)

// parse reads a request and checks it.
func parse(b []byte) (*run.Work, error) {
	r := new(run.Request)
	dec, err := decoding()
	if err == nil {
		err = dec.Unmarshal(b, r)
	}
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "graph: the request cannot be read: %v", err)
	}
	return run.NewWork(r)
}
