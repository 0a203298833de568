package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/record"
	"mobula/wire"
)

// parseSpec reads a spec that was paged out.
func (j *journal) parseSpec(ev Fetched) (*wire.TaskSpec, *errs.Error) {
	if ev.Err != nil {
		return nil, logLost("a task", ev.Err)
	}
	r, _, err := record.Parse(ev.Record)
	if err != nil {
		return nil, logLost("a task", err)
	}
	s, ok := r.(*record.Submit)
	if !ok {
		return nil, logLost("a task", record.ErrBadRecord)
	}
	if s.OptsNo != 0 {
		s.Spec.Opts = j.optByNo[s.OptsNo]
	}
	if s.Spec.Opts == nil {
		return nil, logLost("a task's options", record.ErrBadRecord)
	}
	return s.Spec, nil
}

// findResult reads an object's value from the record that has it.
func findResult(ev Fetched, id ids.ObjectID) (*wire.Result, *errs.Error) {
	what := "object " + id.String()
	if ev.Err != nil {
		return nil, logLost(what, ev.Err)
	}
	r, _, err := record.Parse(ev.Record)
	if err != nil {
		return nil, logLost(what, err)
	}
	var res *wire.Result
	switch r := r.(type) {
	case *record.Object:
		res = &r.Result
	case *record.Done:
		if r.Done.Task == id.Task && int(id.Index) < len(r.Done.Results) {
			res = &r.Done.Results[id.Index]
		}
	}
	if res == nil || res.Kind != wire.ResultInline {
		return nil, logLost(what, record.ErrBadRecord)
	}
	return res, nil
}

// askLog has the record read back whose position is at a place.
func (j *journal) askLog(place *uint64, f *fetch) {
	j.token++
	j.fetches[j.token] = f
	j.effects = append(j.effects, Effect{Kind: Fetch, Token: j.token, msg: place})
}

func logLost(what string, cause error) *errs.Error {
	return &errs.Error{Code: errs.CodeObjectLost, Msg: what + " cannot be read back from the owner's log: " + cause.Error(), Cause: []*errs.Error{errs.From(cause)}}
}
