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

// Attach makes them live, with what failure holds them by.
func (ErrorRefs) Attach(v reflect.Value, held any) error {
	return types.Attach(v, binder{held.(*heldError).c})
}

// heldError holds the objects that an error has references to: when the last copy of the error is garbage, so is this.
type heldError struct {
	c     *client.Client
	cells []*Cell
}

// failure gives an error that c got to the program: what it has references to can be got as long as the program has it. Who
// calls it still holds the object that failed.
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
