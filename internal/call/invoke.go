package call

import (
	"context"
	"unsafe"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/errs"
)

// This file is the worker's side: it decodes arguments, calls the function and encodes results.

// Input decodes the i-th argument. A value that aliases the segment stays pinned until the call returns; any other
// gives its pin back at once.
func Input[T any](ctx context.Context, c *Task, name string, p *Plan, i, of int) (T, error) {
	if len(c.Inputs) != of {
		var none T
		return none, MissingInput(name, of, len(c.Inputs))
	}
	in := &c.Inputs[i]
	var b binder
	if p.MayHoldRefs() {
		if tc := client.FromContext(ctx); tc != nil {
			b.c = tc.Client
		}
	}
	v, err := codec.Type[T]{Plan: p}.Decode(in.Value, in.InPlace, b)
	if err != nil {
		return v, argError(name, i, err)
	}
	if in.Release != nil && !p.InPlace() {
		in.Release()
	}
	return v, nil
}

// Inputs decodes the arguments from the i-th on.
func Inputs[T any](ctx context.Context, c *Task, name string, p *Plan, i int) ([]T, error) {
	out := make([]T, 0, len(c.Inputs)-i)
	for ; i < len(c.Inputs); i++ {
		v, err := Input[T](ctx, c, name, p, i, len(c.Inputs))
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Result encodes the only result.
func Result[R any](ctx context.Context, c *Task, p *Plan, r *R, err error) ([]Output, any, error) {
	if err != nil || c.Drops {
		return nil, nil, err
	}
	out := c.Single()
	t := codec.Type[R]{Plan: p}
	if b, ok := t.AppendSmall(c.Room, r); ok {
		out[0] = Output{Meta: t.Meta(), Size: len(b), Inline: b}
		return out, nil, nil
	}
	if err := Encode(ctx, &out[0], 0, p, r); err != nil {
		return nil, nil, err
	}
	return out, nil, nil
}

// Encode encodes the result of that index.
func Encode[R any](ctx context.Context, dst *Output, index int, p *Plan, r *R) error {
	tc := client.FromContext(ctx)
	if tc == nil {
		return errs.New(errs.CodeInvalid, "result %d: the function's context belongs to no task", index)
	}
	if b := takeResult(tc, index, p, unsafe.Pointer(r)); b != nil {
		*dst = Output{Meta: p.Meta(), Size: b.size, Buffer: b.raw}
		return nil
	}
	e, err := codec.Type[R]{Plan: p}.Encode(r, nil, tc.Client.InlineMax())
	if err != nil {
		return argErrorOf("result", index, err)
	}
	tc.Client.AnnounceOthers(ctx, e.Refs)
	*dst = Output{Meta: e.Meta, Refs: e.Refs, Size: e.Size, Inline: e.Inline, Fill: e.Fill}
	if len(e.Refs) > 0 {
		dst.Keep = *r // its references, until the owner knows of them
	}
	return nil
}

func argErrorOf(what string, i int, err error) error {
	e := errs.From(err)
	return errs.New(e.Code, "%s %d: %s", what, i, e.Msg)
}

// Results encodes a list of results of one type.
func Results[R any](ctx context.Context, name string, p *Plan, rs []R, err error) ([]Output, any, error) {
	if err != nil {
		return nil, nil, err
	}
	if tc := client.FromContext(ctx); tc != nil && tc.Spec != nil && int(tc.Spec.Opts.NumReturns) != len(rs) {
		return nil, nil, errs.New(errs.CodeReturnMismatch, "%s: returned %d results, its caller asked for %d", name, len(rs), tc.Spec.Opts.NumReturns)
	}
	outs := make([]Output, len(rs))
	for i := range rs {
		if err := Encode(ctx, &outs[i], i, p, &rs[i]); err != nil {
			return nil, nil, err
		}
	}
	return outs, nil, nil
}

// Instance gives the actor a method is called on.
func Instance[S any](c *Task, name string) (*S, error) {
	s, ok := c.Instance.(*S)
	if !ok {
		return nil, errs.New(errs.CodeInvalid, "%s: called on an actor of type %T, it is a method of %T: the ActorRef was given the wrong type", name, c.Instance, s)
	}
	return s, nil
}

// Constructed ends a constructor: its one result has no value, and resolves when the actor is constructed.
func Constructed[T any](name string, self *T, err error) ([]Output, any, error) {
	if err == nil && self == nil {
		err = errs.New(errs.CodeInvalid, "%s: the constructor returned a nil actor and no error", name)
	}
	if err != nil {
		return nil, nil, err
	}
	return make([]Output, 1), self, nil
}

// guard cleans up what a call leaves behind, even after a panic.
func guard(f Invoke) Invoke {
	return func(ctx context.Context, c *Task) ([]Output, any, error) {
		defer callEnds(ctx)
		return f(ctx, c)
	}
}
