package inspect

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

// Timeline draws what the node remembers. The document may be larger than a message: it is made
// once, and read in parts by its token.
func (n *Inspector) Timeline(ctx context.Context, r state.TimelineRequest) (state.TimelinePart, error) {
	if r.Token == "" {
		body, err := n.drawTimeline(ctx, r)
		if err != nil {
			return state.TimelinePart{}, err
		}
		if r.Token, err = n.keepDocument(body); err != nil {
			return state.TimelinePart{}, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.documents[r.Token]
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
		delete(n.documents, r.Token)
	}
	return out, nil
}

func (n *Inspector) drawTimeline(ctx context.Context, r state.TimelineRequest) ([]byte, error) {
	rec := n.node.Parts().Events
	if !rec.Recording() {
		return nil, errs.New(errs.CodeInvalid, "node %s records no task events (events.ring is 0)", n.Name)
	}
	in := timeline.Input{Node: n.Name, PID: os.Getpid(), Dropped: rec.Stats().Dropped, Processes: n.processes(ctx)}
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
func (n *Inspector) processes(ctx context.Context) map[ids.ClientID]timeline.Process {
	out := make(map[ids.ClientID]timeline.Process)
	for _, s := range n.node.Clients() {
		name := fmt.Sprintf("worker %v of job %v", s.ID, s.Job)
		if s.Local {
			name = fmt.Sprintf("embedded slots %v of job %v", s.ID, s.Job)
		}
		out[s.ID] = timeline.Process{PID: int(s.PID), Name: name}
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
func (n *Inspector) keepDocument(body []byte) (token string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for t, d := range n.documents {
		if time.Since(d.used) > documentLife {
			delete(n.documents, t)
		}
	}
	if len(n.documents) >= maxDocuments {
		return "", errs.New(errs.CodeBacklog, "%d timelines are being read; try again in a minute", len(n.documents))
	}
	if n.documents == nil {
		n.documents = make(map[string]*document)
	}
	token = rand.Text()
	n.documents[token] = &document{body: body, used: time.Now()}
	return token, nil
}
