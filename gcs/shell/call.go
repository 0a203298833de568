package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"mobula/gcs"
	"mobula/internal/errs"
)

// call is a call to the tables that a node asks the service for, as JSON.
type call struct {
	Epoch    uint64          `json:"epoch,omitempty"` // of the node's life; 0: it has not begun one
	Op       string          `json:"op"`
	Bucket   gcs.Bucket      `json:"bucket"`
	Key      string          `json:"key,omitempty"`
	Record   json.RawMessage `json:"record,omitempty"`
	Revision int64           `json:"revision,omitempty"`
}

// outcome is the service's answer.
type outcome struct {
	Record   json.RawMessage `json:"record,omitempty"`
	Revision uint64          `json:"revision,omitempty"`
	Conflict bool            `json:"conflict,omitempty"`
	Code     errs.Code       `json:"code,omitempty"`
	Error    string          `json:"error,omitempty"`
	Fenced   bool            `json:"fenced,omitempty"` // the life is over
	Away     bool            `json:"away,omitempty"`   // the tables did not answer: the call may have been made, or not
}

// The operations of a call.
const (
	opRead   = "read"
	opWrite  = "write"
	opDelete = "delete"
)

// errCall is a call that this release cannot make.
var errCall = errors.New("control plane: no call that is known")

// newCall is an effect as a call.
func newCall(e gcs.Effect, epoch uint64) (call, error) {
	switch e := e.(type) {
	case gcs.Read:
		return call{Epoch: epoch, Op: opRead, Bucket: e.Bucket, Key: e.Key}, nil
	case gcs.Delete:
		return call{Epoch: epoch, Op: opDelete, Bucket: e.Bucket, Key: e.Key, Revision: e.Revision}, nil
	case gcs.Write:
		row, err := json.Marshal(e.Record)
		return call{Epoch: epoch, Op: opWrite, Bucket: e.Record.Bucket(), Record: row, Revision: e.Revision}, err
	}
	return call{}, fmt.Errorf("%w: %T", errCall, e)
}

// effect is newCall backwards.
func (c call) effect() (gcs.Effect, error) {
	switch c.Op {
	case opRead:
		return gcs.Read{Bucket: c.Bucket, Key: c.Key}, known(c.Bucket)
	case opDelete:
		return gcs.Delete{Bucket: c.Bucket, Key: c.Key, Revision: c.Revision}, known(c.Bucket)
	case opWrite:
		if err := known(c.Bucket); err != nil {
			return nil, err
		}
		r, err := gcs.ParseRecord(c.Bucket, c.Record)
		return gcs.Write{Record: r, Revision: c.Revision}, err
	}
	return nil, fmt.Errorf("%w: %q", errCall, c.Op)
}

// known refuses tables that the service does not give: the authority's for one.
func known(b gcs.Bucket) error {
	if slices.Contains(gcs.Buckets, b) {
		return nil
	}
	return fmt.Errorf("%w: no table %q", errCall, b)
}

// newOutcome is what a call was answered.
func newOutcome(a gcs.Answered) (o outcome) {
	o = outcome{Revision: a.Revision, Conflict: a.Conflict}
	if a.Record != nil && a.Err == nil {
		o.Record, a.Err = json.Marshal(a.Record)
	}
	if a.Err != nil {
		e := errs.From(a.Err)
		_ = errors.As(a.Err, &e) // else it is as From has it
		o.Code, o.Error = e.Code, e.Msg
		o.Fenced, o.Away = errors.Is(a.Err, gcs.ErrFenced), errors.Is(a.Err, errAway)
	}
	return o
}

// answered is newOutcome backwards.
func (o outcome) answered(c call) gcs.Answered {
	a := gcs.Answered{Wrote: c.Op != opRead, Revision: o.Revision, Conflict: o.Conflict}
	switch {
	case o.Fenced:
		a.Err = fmt.Errorf("%w: %w", gcs.ErrFenced, errs.New(o.Code, "%s", o.Error))
	case o.Away:
		a.Err = fmt.Errorf("%w: %w", errAway, errs.New(o.Code, "%s", o.Error))
	case o.Error != "":
		a.Err = errs.New(o.Code, "%s", o.Error)
	case o.Record != nil:
		a.Record, a.Err = gcs.ParseRecord(c.Bucket, o.Record)
	}
	return a
}
