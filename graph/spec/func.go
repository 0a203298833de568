package spec

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"

	"mobula/internal/errs"
)

// Registered is a function that other processes know by its name: a handle of package mobula.
type Registered interface {
	// GraphFunction gives the name and the Go function. A zero handle gives "", a function that is not written in Go
	// gives nil.
	GraphFunction() (name string, function any)
}

// Func is a function that tasks call.
type Func struct {
	Name string         // the registered name; "": it is not registered
	In   []reflect.Type // of the arguments
	Out  reflect.Type   // of the result

	body    reflect.Value
	context bool // the first argument is the context
	fails   bool // the last result is an error
	spread  bool // the function is variadic
}

var (
	typeOfContext = reflect.TypeFor[context.Context]()
	typeOfError   = reflect.TypeFor[error]()
)

// funcOf reads the signature of a function.
func funcOf(function any) (*Func, error) {
	name := ""
	if r, ok := function.(Registered); ok {
		switch name, function = r.GraphFunction(); {
		case name == "":
			return nil, errors.New("the function's handle is the zero value: use the one that Register gave")
		case function == nil:
			return nil, fmt.Errorf("%s is not written in Go: tasks of a graph call Go functions", name)
		}
	}
	return FuncOf(name, function)
}

// FuncOf reads the signature of the Go function that is registered under a name.
func FuncOf(name string, function any) (*Func, error) {
	v := reflect.ValueOf(function)
	if v.Kind() != reflect.Func || v.IsNil() {
		return nil, fmt.Errorf("%T is no function", function)
	}
	t := v.Type()
	f := &Func{Name: name, body: v, spread: t.IsVariadic()}
	for in := range t.Ins() {
		f.In = append(f.In, in)
	}
	if len(f.In) > 0 && f.In[0] == typeOfContext {
		f.context, f.In = true, f.In[1:]
	}
	f.fails = t.NumOut() == 2 && t.Out(1) == typeOfError
	if t.NumOut() != 1 && !f.fails || t.Out(0) == typeOfError {
		return nil, fmt.Errorf("%v: a task's function gives one result, or one and an error", t)
	}
	f.Out = t.Out(0)
	return f, nil
}

// Call calls the function.
func (f *Func) Call(ctx context.Context, args []reflect.Value) (reflect.Value, error) {
	if f.context {
		args = append([]reflect.Value{reflect.ValueOf(ctx)}, args...)
	}
	var outs []reflect.Value
	if f.spread {
		outs = f.body.CallSlice(args)
	} else {
		outs = f.body.Call(args)
	}
	if f.fails && !outs[1].IsNil() {
		return reflect.Value{}, outs[1].Interface().(error)
	}
	return outs[0], nil
}

// panicked makes an error as a worker reports it.
func (f *Func) panicked(p any) error {
	inner := &errs.Error{Code: errs.CodePanic, Msg: fmt.Sprint(p)}
	if err, ok := p.(error); ok {
		inner.Cause = []*errs.Error{errs.From(err)}
	}
	return &errs.Error{Code: errs.CodeTaskFailed, Name: f.Name, Msg: inner.Msg, Stack: string(debug.Stack()), Cause: []*errs.Error{inner}}
}
