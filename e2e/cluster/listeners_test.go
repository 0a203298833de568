package cluster

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
	"testing"

	"mobula/internal/netns"
)

// listener is a socket that takes connections, or packets, of others.
type listener struct {
	network string // "tcp" or "udp"
	at      netip.AddrPort
}

func (l listener) String() string { return fmt.Sprintf("%s %v", l.network, l.at) }

// listeners are all those of a host, by /proc/net.
func listeners(t *testing.T, h *netns.Host) (out []listener) {
	t.Helper()
	for _, file := range []string{"tcp", "tcp6", "udp", "udp6"} {
		var text []byte
		err := h.Do(func() (err error) {
			text, err = os.ReadFile("/proc/thread-self/net/" + file)
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			continue // without IPv6
		}
		must(t, err)
		for line := range strings.Lines(string(text)) {
			l, ok, err := readListener(file, line)
			must(t, err)
			if ok && !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out
}

// readListener reads a line of /proc/net/tcp or the like; ok is false for anything but a listener.
func readListener(file, line string) (l listener, ok bool, err error) {
	const (
		local, state = 1, 3
		listening    = "0A" // TCP
		unconnected  = "07" // UDP
	)
	fields := strings.Fields(line)
	if len(fields) <= state || fields[0] == "sl" {
		return l, false, nil
	}
	l.network = file[:3]
	if want := map[string]string{"tcp": listening, "udp": unconnected}[l.network]; fields[state] != want {
		return l, false, nil
	}
	l.at, err = readAddress(fields[local])
	return l, true, err
}

// readAddress reads an address as these files have it.
func readAddress(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	words, err := hex.DecodeString(host)
	if err != nil || len(words)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("the address %q: %w", text, err)
	}
	for i := 0; i < len(words); i += 4 { // each word in the machine's order
		binary.BigEndian.PutUint32(words[i:], binary.NativeEndian.Uint32(words[i:]))
	}
	addr, _ := netip.AddrFromSlice(words)
	n, err := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), err
}

func TestListenersAreReadAsTheKernelWritesThem(t *testing.T) {
	for _, c := range []struct{ file, line, want string }{
		{"tcp", "   0: 0100007F:0277 00000000:0000 0A 00000000:00000000 00:00000000 00000000", "tcp 127.0.0.1:631"},
		{"tcp", "   1: 02004D0A:1E1E 01004D0A:9C40 01 00000000:00000000 00:00000000 00000000", ""},
		{"tcp6", "   0: 00000000000000000000000001000000:1E1F 00000000000000000000000000000000:0000 0A 0:0", "tcp [::1]:7711"},
		{"tcp6", "   0: 0000000000000000FFFF000002004D0A:1E1F 00000000000000000000000000000000:0000 0A 0:0", "tcp 10.77.0.2:7711"},
		{"udp", "  99: 02004D0A:1E1F 00000000:0000 07 00000000:00000000 00:00000000 00000000", "udp 10.77.0.2:7711"},
		{"udp", "  sl  local_address rem_address   st tx_queue rx_queue", ""},
	} {
		l, ok, err := readListener(c.file, c.line)
		if err != nil || ok != (c.want != "") || ok && l.String() != c.want {
			t.Errorf("%q is read as %v, %v, %v; want %q", c.line, l, ok, err, c.want)
		}
	}
}
