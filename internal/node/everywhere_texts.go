package node

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/internal/state"
	"mobula/telemetry/timeline"
)

// methodRecording is what a node is asked that draws a timeline: state.TimelineRequest; inspect.Recording.
const methodRecording = "timeline.recording"

// mostText is how many bytes of workers' output one answer has.
const mostText = 16 << 20

// logs gives what workers of all nodes wrote; those of one worker come from its own node.
func (r *requests) logs(ctx context.Context, in state.LogsRequest) (out state.Logs, err error) {
	to, err := r.scope(ctx, in.Node)
	home, all, bad := r.inspect.HomeOfLog(in.ID)
	if bad != nil {
		err = bad
	} else if !all && in.Node == "" {
		to = r.homeScope(home)
	}
	if err != nil {
		return out, err
	}
	in.Node = ""
	if to.isHere() {
		if out, err = r.inspect.Logs(ctx, in); !all {
			err = r.unknown(ctx, home, err)
		}
		return out, err
	}
	parts, missing, err := everywhere(ctx, r, to, answerWithin, state.MethodLogs, func(ids.Home) (state.LogsRequest, error) { return in, nil }, r.inspect.Logs)
	if err != nil {
		return out, err
	}
	out.Streams = []state.LogStream{}
	for _, p := range parts {
		for _, s := range p.out.Streams {
			s.Changed -= p.ahead
			out.Streams = append(out.Streams, s)
		}
	}
	if len(out.Streams) == 0 && in.ID != "" {
		return out, errs.New(errs.CodeNotFound, "no worker of the %d nodes that answered has written anything of %s; without an answer: %v", 1+len(to.nodes)-len(missing), in.ID, missing)
	}
	slices.SortStableFunc(out.Streams, func(a, b state.LogStream) int { return cmp.Compare(a.Changed, b.Changed) })
	for _, m := range missing {
		out.Streams = append(out.Streams, state.LogStream{Node: m.Node, Error: m.Why})
	}
	left := mostText
	for i := range slices.Backward(out.Streams) { // the newest are kept
		s := &out.Streams[i]
		if over := len(s.Text) - left; over > 0 {
			s.Text, s.Omitted = strings.ToValidUTF8(s.Text[over:], "?"), s.Omitted+int64(over)
		}
		left -= min(left, len(s.Text))
	}
	return out, nil
}

// timeline draws what nodes remember, and gives the first part of the document; the next ones are named by its token.
func (r *requests) timeline(ctx context.Context, in state.TimelineRequest) (out state.TimelinePart, err error) {
	if in.Token != "" {
		return r.inspect.TimelineRest(in)
	}
	to, err := r.scope(ctx, in.Node)
	if err != nil {
		return out, err
	}
	in.Node = ""
	parts, missing, err := everywhere(ctx, r, to, answerWithin, methodRecording, func(node ids.Home) (state.TimelineRequest, error) {
		q := in
		if q.Since != 0 && node != r.numbers.Row().Home {
			q.Since += r.links.ahead(node)
		}
		return q, nil
	}, r.inspect.Record)
	if err != nil {
		return out, err
	}
	var nodes []timeline.Node
	processes := make(inspect.Processes)
	for i := range parts {
		n, err := parts[i].out.Draw(parts[i].ahead, processes)
		if err != nil {
			return out, err
		}
		nodes = append(nodes, n)
	}
	out, err = r.inspect.Timeline(nodes, processes)
	out.Unreachable = missing
	return out, err
}
