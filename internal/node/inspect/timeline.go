package inspect

import (
	"bytes"
	"crypto/rand"
	"time"

	"mobula/internal/errs"
	"mobula/internal/state"
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

// Timeline draws what nodes have recorded. The document may be larger than a message: it is made once, and read in parts (TimelineRest).
func (n *Inspector) Timeline(recorded []timeline.Node, processes Processes) (state.TimelinePart, error) {
	var b bytes.Buffer
	if err := timeline.Write(&b, timeline.Input{Nodes: recorded, Processes: processes}); err != nil {
		return state.TimelinePart{}, err
	}
	token, err := n.keepDocument(b.Bytes())
	if err != nil {
		return state.TimelinePart{}, err
	}
	return n.TimelineRest(state.TimelineRequest{Token: token})
}

// TimelineRest gives the part of a document that a request names by its token.
func (n *Inspector) TimelineRest(r state.TimelineRequest) (state.TimelinePart, error) {
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
