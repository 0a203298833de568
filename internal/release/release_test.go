package release

import (
	"runtime/debug"
	"testing"
)

func TestTheVersionIsOfTheModuleAndNotOfTheProgram(t *testing.T) {
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"a tag", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v" + Version}}, "v" + Version},
		{"a work tree", debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}, devel},
		{"a commit", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.0.0-20261121200815-fcf86a48ad83+dirty"}}, devel},
		{"a test", debug.BuildInfo{}, devel},
		{"in a program", debug.BuildInfo{
			Main: debug.Module{Path: "example.com/app", Version: "v7.1.0"},
			Deps: []*debug.Module{{Path: "example.com/other", Version: "v1.0.0"}, {Path: module, Version: "v" + Version}},
		}, "v" + Version},
		{"copied into a program", debug.BuildInfo{Main: debug.Module{Path: "example.com/app", Version: "v" + Version}}, devel},
	} {
		if got := of(&c.info); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestVersionsOfThePackage(t *testing.T) {
	for version, want := range map[string]bool{Version: true, Version + ".dev0": true, Version + ".post1": true, Version + "1": false, "0.1.9": false, "": false} {
		if IsOfPackage(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}
