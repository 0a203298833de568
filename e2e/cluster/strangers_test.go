package cluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula/e2e/harness"
	"mobula/internal/netns"
	"mobula/internal/node/nodeport"
	"mobula/internal/testkit"
	"mobula/internal/trust/join"
	remoteshell "mobula/remote/shell"
)

// patience is how long a stranger waits for something to be said.
const patience = time.Second

// probe is something that a stranger tries. It gives what the other side said that is neither handshake nor alert of TLS.
type probe struct {
	name string
	try  func(c net.Conn) ([]byte, error)
}

// probes are what strangers try on every TCP port.
func probes(t *testing.T) []probe {
	t.Helper()
	out := []probe{{"TLS without a certificate", shake(&tls.Config{})}, {"TLS with another authority's certificate", shake(&tls.Config{Certificates: []tls.Certificate{other(t)}})}}
	for _, protocol := range []string{join.Protocol, remoteshell.ALPN, nodeport.ObjectsALPN, "h2"} {
		out = append(out, probe{"TLS for " + protocol + " without a certificate", shake(&tls.Config{NextProtos: []string{protocol}})},
			probe{"TLS for " + protocol + " with another authority's certificate", shake(&tls.Config{NextProtos: []string{protocol}, Certificates: []tls.Certificate{other(t)}})})
	}
	for name, words := range spoken {
		out = append(out, probe{name, say(words)})
	}
	return out
}

// spoken are the first words of protocols, of which none is spoken off loopback.
var spoken = map[string]string{
	"nothing, waiting for INFO of NATS": "",
	"NATS":                              "CONNECT {\"verbose\":true}\r\nPING\r\n",
	"plain text":                        "hello\r\nhelp\r\n",
	"HTTP":                              "GET / HTTP/1.1\r\nHost: mobula\r\nConnection: close\r\n\r\n",
	"SSH":                               "SSH-2.0-OpenSSH_9.6\r\n",
	"half a TLS record":                 "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"a ping of memberlist":              "\x00\x82\xa5SeqNo\x01\xa4Node\xa1x",
	"a join of memberlist":              "\xf4\x06mobula\x06\x83\xa4Join\xc3\xa5Nodes\x01\xacUserStateLen\x00",
	"garbage for memberlist":            "\x06\xff\xfe\x00garbage\x00\x01\x02",
}

// say writes words and gives what comes back, but for handshakes and alerts of TLS.
func say(words string) func(net.Conn) ([]byte, error) {
	return func(c net.Conn) ([]byte, error) {
		if _, err := io.WriteString(c, words); err != nil {
			return nil, err
		}
		var heard bytes.Buffer
		_, err := io.Copy(&heard, c)
		return withoutTLS(heard.Bytes()), err
	}
}

// withoutTLS takes records of handshakes and alerts away.
func withoutTLS(b []byte) []byte {
	const head, alert, handshake = 5, 21, 22
	for len(b) >= head && (b[0] == alert || b[0] == handshake) && b[1] == 3 {
		size := head + int(b[3])<<8 + int(b[4])
		if len(b) < size {
			break
		}
		b = b[size:]
	}
	return b
}

// shake makes a handshake, if the other side lets it, and gives what that says then.
func shake(cfg *tls.Config) func(net.Conn) ([]byte, error) {
	cfg.InsecureSkipVerify = true
	return func(raw net.Conn) ([]byte, error) {
		c := tls.Client(raw, cfg)
		if err := c.Handshake(); err != nil {
			var record tls.RecordHeaderError
			if errors.As(err, &record) {
				return record.RecordHeader[:], err // it does not speak TLS
			}
			return nil, err
		}
		var heard bytes.Buffer
		_, err := io.Copy(&heard, c)
		return heard.Bytes(), err
	}
}

// other makes a certificate of an authority that nobody here knows.
func other(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// told is what listeners of a host tell a stranger who is on another one, each a line.
func told(t *testing.T, stranger *netns.Host, at netip.Addr, ls []listener) (lines []string) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	tell := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprintf(format, args...))
	}
	all := probes(t)
	for _, l := range ls {
		to := l.at
		if to.Addr().IsUnspecified() {
			to = netip.AddrPortFrom(at, to.Port())
		}
		for _, p := range all {
			if l.network == "udp" {
				break
			}
			wg.Go(func() {
				c, err := reach(stranger, "tcp", to)
				if err != nil {
					tell("%v: %v", l, err)
					return
				}
				defer c.Close()
				if heard, err := p.try(c); len(heard) > 0 {
					tell("%v says %q to %s (%v)", l, heard, p.name, err)
				}
			})
		}
		for name, words := range spoken {
			if l.network != "udp" || words == "" {
				continue
			}
			wg.Go(func() {
				c, err := reach(stranger, "udp", to)
				if err != nil {
					tell("%v: %v", l, err)
					return
				}
				defer c.Close()
				heard := make([]byte, 64<<10)
				if _, err := io.WriteString(c, words); err != nil {
					tell("%v: %v", l, err)
				}
				if n, _ := c.Read(heard); n > 0 { // else nothing came
					tell("%v says %q to %s", l, heard[:n], name)
				}
			})
		}
	}
	wg.Wait()
	return lines
}

// reach connects from a host, for as long as a stranger waits.
func reach(from *netns.Host, network string, to netip.AddrPort) (c net.Conn, err error) {
	err = from.Do(func() (err error) {
		c, err = net.DialTimeout(network, to.String(), testkit.Patience())
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(patience))
}

// refusesHTTP tells whether a line of told is no more than a refusal by HTTP, as the metrics answer whoever does not show their token.
func refusesHTTP(line string) bool {
	if strings.Contains(line, "go_") || strings.Contains(line, "mobula_") {
		return false
	}
	return strings.Contains(line, `says "HTTP/1.1 401 `) || strings.Contains(line, `says "HTTP/1.1 400 `) || strings.Contains(line, `says "HTTP/" to TLS`) // of which the handshake reads no more
}

// mostPorts is how many ports a node may listen on.
const mostPorts = 4

func TestAStrangerGetsNothing(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	hosts := network(t, 4)
	stranger := hosts[3]
	c := start(t, hosts[:3], "--metrics-address", "127.0.0.1:9464")
	ctx, _ = connect(t, ctx, c)
	running(t, ctx, idOf(t, ctx, c.Nodes()[1])) // so that there are connections between nodes
	for _, n := range c.Nodes() {
		ls := listeners(t, n.Host)
		t.Logf("node on %v: %v", n.Host.Addr, ls)
		ports := make(map[uint16]bool)
		var far, near []listener
		for _, l := range ls {
			if l.at.Addr().IsLoopback() {
				near = append(near, l)
				continue
			}
			ports[l.at.Port()] = true
			far = append(far, l)
		}
		if len(ports) < 1 || len(ports) > mostPorts {
			t.Errorf("the node on %v listens on %d ports, want 1 to %d", n.Host.Addr, len(ports), mostPorts)
		}
		for _, line := range told(t, stranger, n.Host.Addr, far) {
			t.Error(line)
		}
		if len(near) != 1 {
			t.Errorf("the node on %v listens on %v of the loopback, want its metrics alone", n.Host.Addr, near)
		}
		for _, line := range told(t, n.Host, n.Host.Addr, near) { // by another user of the machine
			if !refusesHTTP(line) {
				t.Error(line)
			}
		}
	}
}

// The probes see what is said: a greeting, an answer, and what comes after a handshake.
func TestTheProbesHearWhatIsSaid(t *testing.T) {
	hosts := network(t, 2)
	there, stranger := hosts[0], hosts[1]
	address := net.JoinHostPort(there.Addr.String(), "0")
	open := map[string]func() (net.Listener, error){
		"greets":  func() (net.Listener, error) { return net.Listen("tcp", address) },
		"answers": func() (net.Listener, error) { return net.Listen("tcp", address) },
		"admits": func() (net.Listener, error) {
			return tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{other(t)}, MinVersion: tls.VersionTLS13})
		},
	}
	serve := map[string]func(c net.Conn){
		"greets":  func(c net.Conn) { _, _ = io.WriteString(c, "INFO {}\r\n") },
		"answers": func(c net.Conn) { _, _ = io.Copy(c, c) },
		"admits":  func(c net.Conn) { _, _ = io.WriteString(c, "welcome") },
	}
	for name, listen := range open {
		t.Run(name, func(t *testing.T) {
			var l net.Listener
			must(t, there.Do(func() (err error) { l, err = listen(); return err }))
			var work sync.WaitGroup
			defer work.Wait()
			defer l.Close()
			work.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					work.Go(func() {
						defer c.Close()
						_ = c.SetDeadline(time.Now().Add(patience))
						serve[name](c)
					})
				}
			})
			ls := listeners(t, there)
			if len(ls) != 1 || ls[0].at != l.Addr().(*net.TCPAddr).AddrPort() {
				t.Fatalf("the listeners are %v, want %v", ls, l.Addr())
			}
			if lines := told(t, stranger, there.Addr, ls); len(lines) == 0 {
				t.Error("the probes hear nothing")
			}
		})
	}
	t.Run("udp", func(t *testing.T) {
		var u net.PacketConn
		must(t, there.Do(func() (err error) { u, err = net.ListenPacket("udp", address); return err }))
		done := make(chan struct{})
		defer func() { _ = u.Close(); <-done }()
		go func() {
			defer close(done)
			for b := make([]byte, 1000); ; {
				n, from, err := u.ReadFrom(b)
				if err != nil {
					return
				}
				_, _ = u.WriteTo(b[:n], from)
			}
		}()
		if lines := told(t, stranger, there.Addr, listeners(t, there)); len(lines) != len(spoken)-1 {
			t.Errorf("the probes hear %q", lines)
		}
	})
}
