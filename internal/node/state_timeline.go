package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/raylet"
	"mobula/telemetry/timeline"
)

const (
	documentPart = 4 << 20 // bytes of one answer
	documentLife = time.Minute
	maxDocuments = 4
)

// document is a timeline that is read in parts.
type document struct {
	body []byte
	used time.Time
}

// timeline draws what the node remembers. The document may be larger than a message: it is made
// once, and read in parts by its token.
func (n *Node) timeline(ctx context.Context, r state.TimelineRequest) (state.TimelinePart, error) {
	if r.Token == "" {
		body, err := n.drawTimeline(ctx, r)
		if err != nil {
			return state.TimelinePart{}, err
		}
		if r.Token, err = n.keepDocument(body); err != nil {
			return state.TimelinePart{}, err
		}
	}
	o := &n.obs
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.documents[r.Token]
	if d == nil {
		return state.TimelinePart{}, errs.New(errs.CodeNotFound, "the timeline %q is not kept any more; ask for it again", r.Token)
	}
	if r.Offset < 0 || r.Offset > int64(len(d.body)) {
		return state.TimelinePart{}, errs.New(errs.CodeInvalid, "offset %d of a timeline of %d bytes", r.Offset, len(d.body))
	}
	d.used = time.Now()
	end := min(r.Offset+documentPart, int64(len(d.body)))
	out := state.TimelinePart{Token: r.Token, Body: d.body[r.Offset:end], Next: end}
	if end == int64(len(d.body)) {
		out.Next = 0
		delete(o.documents, r.Token)
	}
	return out, nil
}

func (n *Node) drawTimeline(ctx context.Context, r state.TimelineRequest) ([]byte, error) {
	rec := n.obs.rec
	if !rec.Recording() {
		return nil, errs.New(errs.CodeInvalid, "node %s records no task events (events.ring is 0)", n.cfg.Name)
	}
	in := timeline.Input{Node: n.cfg.Name, PID: os.Getpid(), Dropped: rec.Stats().Dropped, Processes: n.processes(ctx)}
	parts, _, lost := rec.Since(0)
	in.Lost = lost
	for _, p := range parts {
		for i := range p {
			if e := &p[i]; e.At >= r.Since && (r.Job == "" || e.Task.Job().String() == r.Job) {
				in.Events = append(in.Events, *e)
			}
		}
	}
	var b bytes.Buffer
	err := timeline.Write(&b, in)
	return b.Bytes(), err
}

// processes names the workers that there are; of those that are gone only the number is known.
func (n *Node) processes(ctx context.Context) map[ids.ClientID]timeline.Process {
	out := make(map[ids.ClientID]timeline.Process)
	for _, s := range n.clients.all() {
		name := fmt.Sprintf("worker %v of job %v", s.id, s.job)
		if s.local() {
			name = fmt.Sprintf("embedded slots %v of job %v", s.id, s.job)
		}
		out[s.id] = timeline.Process{PID: int(s.pid), Name: name}
	}
	infos, err := inRaylet(ctx, n, (*raylet.Core).Workers)
	if err != nil {
		return out // the names say less
	}
	for _, w := range infos {
		name := fmt.Sprintf("%s %v of job %v", w.Slot, w.Worker, w.Job)
		if w.Func != "" {
			name += " for " + w.Func
		}
		out[w.Client] = timeline.Process{PID: int(w.PID), Name: name}
	}
	return out
}

// keepDocument keeps a document for its reader, for a while.
func (n *Node) keepDocument(body []byte) (token string, err error) {
	o := &n.obs
	o.mu.Lock()
	defer o.mu.Unlock()
	for t, d := range o.documents {
		if time.Since(d.used) > documentLife {
			delete(o.documents, t)
		}
	}
	if len(o.documents) >= maxDocuments {
		return "", errs.New(errs.CodeBacklog, "%d timelines are being read; try again in a minute", len(o.documents))
	}
	if o.documents == nil {
		o.documents = make(map[string]*document)
	}
	token = rand.Text()
	o.documents[token] = &document{body: body, used: time.Now()}
	return token, nil
}
