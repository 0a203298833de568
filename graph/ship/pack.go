package ship

import (
	"context"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"mobula/graph/spec"
	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/telemetry"
	"mobula/wire"
)

// payload is a call of a function, as bytes in CBOR.
type payload struct {
	_    struct{} `cbor:",toarray"`
	Func string
	Args []arg
}

// arg is a spec.Expr with its literals encoded.
type arg struct {
	_     struct{} `cbor:",toarray"`
	Kind  spec.ExprKind
	Input int32  // for a result, or a literal that is an object: the input of the call, from 1 on
	From  string // for a result that is taken as an interface: the function whose result it is
	Meta  []byte // for a literal in the payload
	Data  []byte
	Names []string
	Elems []arg
}

// smallLiteral is the size in bytes up to which a literal is copied into the payload of each task that takes it; a larger one
// becomes an object, once for all of them.
const smallLiteral = 1 << 10

// packer makes the payloads of a plan's tasks.
type packer struct {
	*Runtime
	ctx      context.Context
	tc       *client.TaskContext
	p        *spec.Plan
	literals map[*spec.Expr]int32 // those that are objects, by index
	objects  []*client.Handle     // held until close
}

func newPacker(ctx context.Context, rt *Runtime, p *spec.Plan) (*packer, error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return nil, err
	}
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.Func.Name == "" {
			return nil, &spec.InvalidError{Key: t.Key, Why: "its function is not registered, so no other process knows it: register it with package mobula, or run the graph with Sync or Threads"}
		}
	}
	return &packer{Runtime: rt, ctx: ctx, tc: tc, p: p, literals: make(map[*spec.Expr]int32)}, nil
}

// trace gives a spec its trace: the caller's span if the call is made in one, else that of the calling task.
func (k *packer) trace(s *wire.TaskSpec) {
	parent := telemetry.FromContext(k.ctx)
	if parent == (wire.TraceContext{}) {
		parent = k.tc.Trace
	}
	if s.Trace = k.tc.Client.Trace(parent, s.ID); s.Trace.Sampled() {
		s.Submitted = k.tc.Client.Now()
	}
}

func (k *packer) close() {
	for _, h := range k.objects {
		h.Release()
	}
	k.objects = nil
}

// put makes an object that is held until close, and gives its index.
func (k *packer) put(e *codec.Encoded) (int32, error) {
	h, err := k.Put(k.ctx, k.tc, e)
	if err != nil {
		return 0, err
	}
	k.objects = append(k.objects, h)
	return int32(len(k.objects) - 1), nil
}

// bytesArg makes an argument of plain bytes. Call done when the call that takes it was submitted.
func (k *packer) bytesArg(b []byte) (a wire.Arg, done func(), err error) {
	if len(b) <= k.tc.Client.InlineMax() {
		return wire.Arg{Value: wire.Value{Meta: k.bytesMeta(), Data: b}}, func() {}, nil
	}
	h, err := k.Put(k.ctx, k.tc, k.bytes(b))
	if err != nil {
		return wire.Arg{}, nil, err
	}
	return wire.Arg{Ref: h.Passed()}, h.Release, nil
}

// bytes encodes plain bytes.
func (k *packer) bytes(b []byte) *codec.Encoded {
	return &codec.Encoded{Meta: k.bytesMeta(), Size: len(b), Inline: b}
}

func (k *packer) bytesMeta() []byte { return k.Types.PlanOf(reflect.TypeFor[[]byte]()).Meta() }

// task gives a task's payload, and the objects that its call takes after the results.
func (k *packer) task(t int32) (data []byte, objects []int32, err error) {
	x := &k.p.Tasks[t]
	inputs := make(map[int32]int32, len(x.Deps)) // inputs of the call, by task
	for i, d := range x.Deps {
		inputs[d] = int32(i) + 1
	}
	at := make(map[int32]int32) // likewise by object
	var pack func(e *spec.Expr) (arg, error)
	pack = func(e *spec.Expr) (arg, error) {
		a := arg{Kind: e.Kind, Names: e.Names}
		switch e.Kind {
		case spec.Literal:
			small, o, err := k.literal(e)
			switch {
			case err != nil:
				return a, err
			case small != nil:
				a.Meta, a.Data = small.Meta, small.Inline
				return a, nil
			}
			if at[o] == 0 {
				objects = append(objects, o)
				at[o] = int32(len(x.Deps) + len(objects))
			}
			a.Input = at[o]
			return a, nil
		case spec.Result:
			a.Input = inputs[e.Task]
			if e.Type.Kind() == reflect.Interface {
				a.From = k.p.Tasks[e.Task].Func.Name
			}
			return a, nil
		}
		a.Elems = make([]arg, len(e.Elems))
		for i := range e.Elems {
			if a.Elems[i], err = pack(e.Elems[i]); err != nil {
				return a, err
			}
		}
		return a, nil
	}
	call := payload{Func: x.Func.Name, Args: make([]arg, len(x.Args))}
	for i, e := range x.Args {
		if call.Args[i], err = pack(e); err != nil {
			return nil, nil, fmt.Errorf("argument %d: %w", i, err)
		}
	}
	data, err = cbor.Marshal(&call)
	return data, objects, err
}

// literal encodes a small literal, or makes an object of a larger one, once.
func (k *packer) literal(e *spec.Expr) (small *codec.Encoded, object int32, err error) {
	if o, ok := k.literals[e]; ok {
		return nil, o, nil
	}
	v := reflect.New(e.Type).Elem()
	v.Set(e.Value)
	enc, err := k.Types.PlanOf(e.Type).EncodeValue(v, smallLiteral)
	if err != nil {
		return nil, 0, err
	}
	if enc.Fill == nil && enc.Size <= smallLiteral && len(enc.Refs) == 0 {
		return &enc, 0, nil
	}
	if object, err = k.put(&enc); err == nil {
		k.literals[e] = object
	}
	return nil, object, err
}
