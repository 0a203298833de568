package main

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/errs"
	"mobula/internal/state"
)

func TestCancelAndKill(t *testing.T) {
	var mu sync.Mutex // the fake node answers each command in a goroutine of its own
	var cancelled state.CancelRequest
	var killed state.KillRequest
	addr := fakeNode(t, map[string]any{
		state.MethodCancel: func(body []byte) any {
			mu.Lock()
			defer mu.Unlock()
			if err := cbor.Unmarshal(body, &cancelled); err != nil {
				return err
			}
			switch cancelled.ID {
			case "gone":
				return errs.New(errs.CodeNotFound, "task %s is not known", cancelled.ID)
			case "done":
				return state.Cancelling{Task: taskID, Name: "add", Was: "FINISHED", State: "FINISHED", Ended: true}
			}
			return state.Cancelling{Task: taskID, Name: "add", Was: "RUNNING", State: "CANCELLED"}
		},
		state.MethodKill: func(body []byte) any {
			mu.Lock()
			defer mu.Unlock()
			if err := cbor.Unmarshal(body, &killed); err != nil {
				return err
			}
			if killed.Actor == "nobody" {
				return errs.New(errs.CodeNotFound, "no actor has the id %q", killed.Actor)
			}
			return state.Killed{Actor: taskID, Type: "app/counter", Name: "hits", Was: "ALIVE", State: "DEAD"}
		},
	})
	for _, c := range []struct {
		args string
		code int
		out  string
		err  string
	}{
		{"cancel " + taskID, exitDone, "task " + taskID + " (add) is cancelled: it was RUNNING and is CANCELLED\n", ""},
		{"cancel done", exitDone, "task " + taskID + " (add) had ended: it is FINISHED\n", ""},
		{"cancel done --recursive", exitDone, "task " + taskID + " (add) had ended: it is FINISHED; what it submitted is cancelled\n", ""},
		{"cancel gone", exitNotFound, "", "task gone is not known"},
		{"cancel", exitUsage, "", "accepts 1 arg"},
		{"kill hits --namespace prod", exitDone, "actor " + taskID + " (app/counter \"hits\") was ALIVE and is DEAD\n", ""},
		{"kill nobody", exitNotFound, "", `"nobody"`},
		{"kill", exitUsage, "", "accepts 1 arg"},
	} {
		code, out, errOut := command(t, nil, append(strings.Fields(c.args), "--address", addr)...)
		if code != c.code || out != c.out || !strings.Contains(errOut, c.err) || c.err == "" && errOut != "" {
			t.Errorf("%s: exit %d, %s%s", c.args, code, out, errOut)
		}
	}
	asked := func() (state.CancelRequest, state.KillRequest) {
		mu.Lock()
		defer mu.Unlock()
		return cancelled, killed
	}
	if _, kill := asked(); kill.Restart {
		t.Error("by default an actor is killed to restart")
	}
	code, out, _ := command(t, nil, "kill", "hits", "--namespace", "test", "--no-restart=false", "--json", "--address", addr)
	_, kill := asked()
	var k state.Killed
	if err := json.Unmarshal([]byte(out), &k); code != exitDone || err != nil || k.Type != "app/counter" || kill != (state.KillRequest{Actor: "hits", Namespace: "test", Restart: true}) {
		t.Errorf("exit %d, %v, %s of %+v", code, err, out, kill)
	}
	code, out, _ = command(t, nil, "cancel", taskID, "--force", "--recursive", "--json", "--address", addr)
	cancel, _ := asked()
	var d state.Cancelling
	if err := json.Unmarshal([]byte(out), &d); code != exitDone || err != nil || d.Was != "RUNNING" || cancel != (state.CancelRequest{ID: taskID, Force: true, Recursive: true}) {
		t.Errorf("exit %d, %v, %s of %+v", code, err, out, cancel)
	}
}
