package call

import (
	"reflect"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// ErrorRefs finds the references in errors of registered types.
type ErrorRefs struct{}

// Find gives the references in an error.
func (ErrorRefs) Find(v reflect.Value) ([]ids.ObjectID, error) { return types.Refs(v) }

// Attach makes the references live; held is what failure keeps them with.
func (ErrorRefs) Attach(v reflect.Value, held any) error {
	return types.Attach(v, binder{held.(*heldError).c})
}

// LeftOut tells what would not be encoded.
func (ErrorRefs) LeftOut(t reflect.Type) error { return types.LeftOut(t) }

// heldError holds the objects that an error refers to. It becomes garbage with the last copy of the error.
type heldError struct {
	c     *client.Client
	cells []*Cell
}

// failure prepares an error that c received for the program: the objects that it refers to live as long as the program has
// the error. The caller still holds the failed object meanwhile.
func failure(c *client.Client, err error) error {
	e, ok := err.(*errs.Error)
	if !ok {
		return err
	}
	return e.Hold(func(refs []ids.ObjectID) any {
		h := &heldError{c: c}
		for _, id := range refs {
			idle.borrowed()
			h.cells = append(h.cells, newCell(c, c.Bind(id), nil))
		}
		return h
	})
}
