package worker

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// arguments fills the inputs: values from the spec, references from the resolved values that came with the task,
// both in order.
func (r *runner) arguments(spec *wire.TaskSpec) *errs.Error {
	refs := r.task.Args
	for i := range spec.Args {
		a := &spec.Args[i]
		if a.Ref.IsZero() {
			r.inputs = append(r.inputs, registry.Input{Value: a.Value})
			continue
		}
		if len(refs) == 0 || int(refs[0].Index) != i {
			return errs.New(errs.CodeProtocol, "argument %d (%v) of %q did not come with the task", i, a.Ref, spec.Opts.Func)
		}
		in, err := r.resolve(&refs[0])
		if err != nil {
			return err
		}
		r.inputs = append(r.inputs, in)
		refs = refs[1:]
	}
	return nil
}

func (r *runner) resolve(v *wire.ArgValue) (registry.Input, *errs.Error) {
	switch v.Result.Kind {
	case wire.ResultInline:
		return registry.Input{Value: v.Result.Value}, nil
	case wire.ResultError:
		if v.Result.Err != nil {
			return registry.Input{}, v.Result.Err
		}
		return registry.Input{}, errs.New(errs.CodeProtocol, "argument %d failed without an error", v.Index)
	case wire.ResultStored:
		if r.straight != nil {
			return r.read(r.task.Spec.Args[v.Index].Ref)
		}
	default:
		return registry.Input{}, errs.New(errs.CodeProtocol, "argument %d came without a result", v.Index)
	}
	mem := r.lane.e.cfg.Memory
	if mem == nil {
		return registry.Input{}, errs.New(errs.CodeProtocol, "argument %d lies in the segment, which this worker has not mapped", v.Index)
	}
	data, err := mem.Map(v.Extent, false)
	if err != nil {
		return registry.Input{}, errs.From(err)
	}
	if uint64(len(data)) < v.Result.Size {
		return registry.Input{}, errs.New(errs.CodeProtocol, "argument %d: the extent has %d bytes, the object %d", v.Index, len(data), v.Result.Size)
	}
	val := v.Result.Value
	val.Data = r.args.lend(data[:v.Result.Size:v.Result.Size])
	return registry.Input{Value: val, InPlace: true}, nil
}

// read reads a stored argument of a call that went straight: nobody has pinned it for that. It stays until the call has ended.
func (r *runner) read(id ids.ObjectID) (registry.Input, *errs.Error) {
	h := r.lane.e.c.Bind(id)
	defer h.Release() // the caller holds the object
	d, err := r.lane.e.c.Get1(&r.call.ctx, h)
	if err != nil {
		return registry.Input{}, errs.From(err)
	}
	r.reads = append(r.reads, d)
	val := d.Value
	if d.Pinned() {
		val.Data = r.args.lend(val.Data)
	}
	return registry.Input{Value: val, InPlace: d.Pinned()}, nil
}
