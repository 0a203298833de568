package node

import (
	"net/netip"
	"slices"
	"testing"

	"mobula/internal/sockets"
	"mobula/internal/state"
)

// A socket that the process has and the node does not know is shown; one that other machines reach is dangerous.
func TestASocketThatNobodyKnowsIsShown(t *testing.T) {
	known := []state.Listening{
		{Network: "unix", Address: "/tmp/a/node.sock"}, {Network: "tcp", Address: "10.0.0.1:7710"}, {Network: "udp", Address: "10.0.0.1:7711"}, {Network: "tcp", Address: "[::]:7712"},
	}
	at := netip.MustParseAddrPort
	all := []sockets.Socket{
		{Network: "unix", Path: "/proc/self/fd/9/node.sock"}, {Network: "tcp", At: at("10.0.0.1:7710")}, {Network: "udp", At: at("10.0.0.1:7711")}, {Network: "tcp", At: at("[::]:7712")},
		{Network: "tcp", At: at("10.0.0.1:7711")}, {Network: "udp", At: at("0.0.0.0:7710")}, {Network: "tcp", At: at("127.0.0.1:9999")}, {Network: "unix", Path: "@other"},
	}
	want := []string{"tcp 10.0.0.1:7711 away", "udp 0.0.0.0:7710 away", "tcp 127.0.0.1:9999", "unix @other"}
	var got []string
	for _, l := range unexpected(all, known) {
		line := l.Network + " " + l.Address
		if l.Away {
			line += " away"
		}
		got = append(got, line)
		if !l.Unexpected {
			t.Errorf("%s is expected", line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("not known are %q, want %q", got, want)
	}
}

func TestWhoseHostIsThisMachine(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": false, "": false, "10.0.0.1": false, "::": false, "example.org": false} {
		if isLoopback(host) != want {
			t.Errorf("%q is of this machine: %v", host, !want)
		}
	}
}
