package testkit

import (
	"fmt"
	"net"
	"testing"
)

func TestPortsAreFreeAndGivenOnce(t *testing.T) {
	seen := make(map[int]bool)
	for range 50 {
		first := Ports(t, 4)
		for p := first; p < first+4; p++ {
			if seen[p] || p < portsFrom || p >= portsEnd {
				t.Errorf("port %d was given before, or is not from %d to %d", p, portsFrom, portsEnd)
			}
			seen[p] = true
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
	}
}
