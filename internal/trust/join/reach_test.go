package join

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"mobula/internal/trust"
	"mobula/internal/trust/authority"
)

// A node whose address is of another network is refused before it has a home: behind a NAT nobody answers there, or somebody else does.
func TestANodeThatNobodyReachesIsRefused(t *testing.T) {
	w := newWorld(t)
	tok := w.token(t, authority.Making{Role: trust.Driver, Once: true})
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, nobody.Close())
	other := wish(t, trust.Driver)
	asked := wish(t, trust.Driver)
	is := asked.Address
	for what, address := range map[string]string{"nobody answers": nobody.Addr().String(), "another node answers": other.Address, "none is given": "", "it is none": "x"} {
		asked.Address = address
		_, err := w.ask(t, w.server, tok, asked)
		if !errors.Is(err, trust.ErrUnreachable) || !strings.Contains(err.Error(), "--advertise") || !strings.Contains(err.Error(), strconv.Quote(address)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := w.homes.Len(); n != 0 {
		t.Errorf("%d nodes that were refused have a home", n)
	}
	asked.Address = is
	_, err = w.ask(t, w.server, tok, asked)
	must(t, err)
}

// A listener that has answered is a listener as before.
func TestAListenerThatHasAnsweredAcceptsAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	asked := wish(t, trust.Data)
	stop, err := Answer(l.(Listener), asked.Key)
	must(t, err)
	must(t, stop())
	dialed, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer dialed.Close()
	accepted, err := l.Accept()
	must(t, err)
	must(t, accepted.Close())
}
