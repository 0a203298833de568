package testkit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
)

// Ports are tried from here on. They lie below those that the system gives to connections.
const (
	portsFrom = 12_000
	portsEnd  = 30_000
)

var portsTried atomic.Int64

// Ports finds n ports of the loopback in a row that nobody has, and gives the first. The system gives them to no connection, and tests of other processes look from
// another port on: a server that comes up later finds them free, and can come back to them.
func Ports(t testing.TB, n int) int {
	t.Helper()
	for range portsEnd - portsFrom {
		first := portsFrom + int((int64(os.Getpid())*269+portsTried.Add(int64(n)))%(portsEnd-portsFrom-int64(n)))
		if free(t, first, n) {
			return first
		}
	}
	t.Fatalf("there are no %d free ports in a row from %d to %d", n, portsFrom, portsEnd)
	return 0
}

func free(t testing.TB, first, n int) bool {
	t.Helper()
	for p := first; p < first+n; p++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if errors.Is(err, syscall.EADDRINUSE) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // it was only tried
	}
	return true
}
