package main

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/state"
)

func TestLogs(t *testing.T) {
	var last atomic.Pointer[state.LogsRequest] // of what was asked
	addr := fakeNode(t, map[string]any{state.MethodLogs: func(body []byte) any {
		var asked state.LogsRequest
		if err := cbor.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		last.Store(&asked)
		if asked.ID == "" {
			return state.Logs{Streams: []state.LogStream{
				{Worker: "worker/3", Stream: "err", Path: "/n/logs/worker-3.err", Size: 5 << 20, Changed: at},
				{Worker: "worker/4", Stream: "out", Path: "/n/logs/worker-4.out", Size: 12, Changed: at + 60e9},
			}}
		}
		return state.Logs{Streams: []state.LogStream{
			{Worker: "worker/3", Stream: "out", Path: "/n/logs/worker-3.out", Size: 3000, Omitted: 2000, Text: "one\ttwo\x1b[2J\n"},
			{Worker: "worker/3", Stream: "err", Path: "/n/logs/worker-3.err", Size: 4, Text: "half"},
		}}
	}})
	code, out, errOut := command(t, nil, "logs", "--address", addr)
	if code != exitDone || errOut != "" || *last.Load() != (state.LogsRequest{Bytes: state.DefaultLogBytes}) {
		t.Errorf("exit %d, %s, asked %+v", code, errOut, *last.Load())
	}
	golden(t, "logs", out)
	code, out, _ = command(t, nil, "logs", "worker/3", "-b", "3000", "--address", addr)
	if code != exitDone || *last.Load() != (state.LogsRequest{ID: "worker/3", Bytes: 3000}) {
		t.Errorf("exit %d, asked %+v", code, *last.Load())
	}
	golden(t, "logs-of", out)
	code, out, _ = command(t, nil, "logs", taskID, "--json", "--address", addr)
	var l state.Logs
	if err := json.Unmarshal([]byte(out), &l); err != nil || code != exitDone || len(l.Streams) != 2 || l.Streams[0].Text != "one\ttwo\x1b[2J\n" {
		t.Errorf("exit %d, %v, %s", code, err, out)
	}
	for _, args := range []string{"logs -b 0", "logs -b 4194305", "logs a b"} {
		if code, _, errOut := command(t, nil, append(strings.Fields(args), "--address", addr)...); code != exitUsage || errOut == "" {
			t.Errorf("%s: exit %d, %s", args, code, errOut)
		}
	}
}
