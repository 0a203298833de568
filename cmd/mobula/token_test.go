package main

import (
	"strings"
	"testing"
	"time"

	"mobula/internal/state"
)

// How to join with a token is shown for its role: a machine with the role's flag, a program without a command.
func TestATokenSaysHowToJoinWithIt(t *testing.T) {
	for role, want := range map[string][]string{
		"data":          {"MOBULA_TOKEN=mbl1.x mobula start --join 10.0.0.1:7710\n"},
		"control-plane": {"MOBULA_TOKEN=mbl1.x mobula start --join 10.0.0.1:7710 --role control-plane\n"},
		"driver":        {"MOBULA_TOKEN=mbl1.x\n", `mobula.init("10.0.0.1:7710")`, `mobula.Connect(ctx, "10.0.0.1:7710")`},
	} {
		made := state.MadeToken{Token: "mbl1.x", Role: role, Expires: time.Unix(1_700_000_000, 0), Join: []string{"10.0.0.1:7710"}}
		addr := fakeNode(t, map[string]any{state.MethodTokenMake: made})
		code, out, errOut := command(t, nil, "token", "create", "--role", role, "--address", addr)
		if code != exitDone || errOut != "" || !strings.HasPrefix(out, "mbl1.x\n") {
			t.Errorf("exit %d, %s%s", code, out, errOut)
		}
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("for the role %s it does not say %q:\n%s", role, text, out)
			}
		}
		if strings.Contains(out, "mobula start") == (role == "driver") {
			t.Errorf("for the role %s:\n%s", role, out)
		}
	}
}

func TestATokenLivesForSomeTime(t *testing.T) {
	for _, lifetime := range []string{"0", "-5s"} {
		if code, out, errOut := command(t, nil, "token", "create", "--lifetime="+lifetime); code != exitUsage || out != "" || !strings.Contains(errOut, "--lifetime") {
			t.Errorf("%s: exit %d, %s%s", lifetime, code, out, errOut)
		}
	}
}
