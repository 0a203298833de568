package sockets

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Socket is one that listens. A UDP socket listens as long as it is connected to nobody.
type Socket struct {
	Network string         // "tcp", "udp" or "unix"
	At      netip.AddrPort // of TCP and UDP
	Path    string         // of a Unix socket; "@" begins a name that is no file, and empty: it has none
}

// Listening are the sockets of this process on which it listens.
func Listening() ([]Socket, error) {
	own, err := inodes("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	var out []Socket
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6", "unix"} {
		text, err := os.ReadFile("/proc/self/net/" + table)
		if errors.Is(err, fs.ErrNotExist) {
			continue // without IPv6
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			read := inet
			if table == "unix" {
				read = unix
			}
			s, inode, err := read(table, strings.Fields(line))
			if err != nil {
				return nil, fmt.Errorf("/proc/self/net/%s: %w", table, err)
			}
			if own[inode] && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// inodes are those of a process' sockets.
func inodes(dir string) (map[string]bool, error) {
	fds, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool)
	for _, fd := range fds {
		to, err := os.Readlink(dir + "/" + fd.Name())
		if err != nil {
			continue // it was closed meanwhile
		}
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out, nil
}

// inet reads a line of the tables of TCP and UDP; the inode is empty if it is no socket that listens.
func inet(table string, fields []string) (s Socket, inode string, err error) {
	const (
		local, state, last = 1, 3, 9
		listening          = "0A" // TCP
		unconnected        = "07" // UDP
	)
	s.Network = table[:3]
	if len(fields) <= last || fields[state] != map[string]string{"tcp": listening, "udp": unconnected}[s.Network] {
		return s, "", nil
	}
	host, port, _ := strings.Cut(fields[local], ":")
	words, err := hex.DecodeString(host)
	if err != nil || len(words)%4 != 0 {
		return s, "", fmt.Errorf("the address %q", host)
	}
	for i := 0; i < len(words); i += 4 { // each word in the machine's order
		binary.BigEndian.PutUint32(words[i:], binary.NativeEndian.Uint32(words[i:]))
	}
	addr, ok := netip.AddrFromSlice(words)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return s, "", fmt.Errorf("the address %q", fields[local])
	}
	s.At = netip.AddrPortFrom(addr.Unmap(), uint16(n))
	return s, fields[last], nil
}

// unix is inet for Unix sockets.
func unix(_ string, fields []string) (s Socket, inode string, err error) {
	const (
		flags, node, path = 3, 6, 7
		accepts           = "00010000"
	)
	if len(fields) <= node || fields[flags] != accepts {
		return s, "", nil
	}
	s.Network = "unix"
	if len(fields) > path {
		s.Path = strings.Join(fields[path:], " ")
	}
	return s, fields[node], nil
}
