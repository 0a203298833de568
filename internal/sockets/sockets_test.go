package sockets

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTablesAreReadAsTheKernelWritesThem(t *testing.T) {
	for _, c := range []struct {
		table, line, want string
	}{
		{"tcp", "0: 0100007F:0277 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 77 1", "tcp 127.0.0.1:631 77"},
		{"tcp", "1: 02004D0A:1E1E 01004D0A:9C40 01 00000000:00000000 00:00000000 00000000 1000 0 78 1", ""},
		{"tcp6", "0: 00000000000000000000000001000000:1E1F 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 79 1", "tcp [::1]:7711 79"},
		{"udp", "99: 02004D0A:1E1F 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 80 2", "udp 10.77.0.2:7711 80"},
		{"udp", "sl local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode", ""},
		{"unix", "0000000000000000: 00000002 00000000 00010000 0001 01 81 /run/a node.sock", "unix /run/a node.sock 81"},
		{"unix", "0000000000000000: 00000003 00000000 00000000 0001 03 82 /run/node.sock", ""},
		{"unix", "Num RefCount Protocol Flags Type St Inode Path", ""},
	} {
		read := inet
		if c.table == "unix" {
			read = unix
		}
		s, inode, err := read(c.table, strings.Fields(c.line))
		got := ""
		if inode != "" {
			at := s.Path
			if s.Network != "unix" {
				at = s.At.String()
			}
			got = s.Network + " " + at + " " + inode
		}
		if err != nil || got != c.want {
			t.Errorf("%q is read as %q, %v; want %q", c.line, got, err, c.want)
		}
	}
	if _, _, err := inet("tcp", strings.Fields("0: 01007F:0277 0 0A 0 0 0 0 0 1")); err == nil {
		t.Error("half an address is read")
	}
}

// What this process listens on is listed, and what it has connected is not.
func TestListeningHere(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	path := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	c, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := Listening()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Socket{
		{Network: "tcp", At: tcp.Addr().(*net.TCPAddr).AddrPort()}, {Network: "udp", At: udp.LocalAddr().(*net.UDPAddr).AddrPort()}, {Network: "unix", Path: path},
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%v is not among %v", want, got)
		}
	}
	if slices.ContainsFunc(got, func(s Socket) bool { return s.At == c.LocalAddr().(*net.TCPAddr).AddrPort() }) {
		t.Errorf("a connection is among %v", got)
	}
}
