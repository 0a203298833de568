package floor

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peerRole, and the host to listen on, is what childEnv says in the process that StartPeer starts.
const peerRole = "peer "

// peerPatience bounds a dial, and the wait for the peer to listen.
const peerPatience = 20 * time.Second

// Peer is a process at the other end of a network. It speaks TLS 1.3 as nodes do: each side shows a certificate, and no handshake is left out.
type Peer struct {
	address string
	config  *tls.Config
	in      io.Closer
	wait    func() error
}

// StartPeer starts one, which listens on the host. start starts the command, wherever it is to run. A program that calls it calls Child first in
// main.
func StartPeer(ctx context.Context, host string, start func(*exec.Cmd) error) (_ *Peer, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("floor: find this program: %w", err)
	}
	id, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("floor: certificate: %w", err)
	}
	p := &Peer{}
	if p.config, err = id.config(); err != nil {
		return nil, fmt.Errorf("floor: certificate: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childEnv+"="+peerRole+host)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("floor: start peer: %w", err)
	}
	p.in = in
	p.wait = func() error {
		if err := cmd.Wait(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("floor: peer: %w", err)
		}
		return nil
	}
	late := time.AfterFunc(peerPatience, func() { _ = cmd.Process.Kill() }) // then the read below ends
	defer late.Stop()
	if err = json.NewEncoder(in).Encode(id); err == nil {
		p.address, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("floor: the peer does not listen: %w", err), p.Close())
	}
	p.address = strings.TrimSpace(p.address)
	return p, nil
}

// Close ends the process.
func (p *Peer) Close() error {
	_ = p.in.Close() // tells it to go
	return p.wait()
}

// Cipher names how bytes to the peer are encrypted.
func (p *Peer) Cipher(ctx context.Context) (string, error) {
	c, err := p.dial(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return tls.CipherSuiteName(c.ConnectionState().CipherSuite), nil
}

// PingPong sends a message to the peer and waits for it to come back: seconds a round.
func (p *Peer) PingPong(ctx context.Context, m Messages) ([]float64, error) {
	m, err := m.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := request(c, wantEcho, int64(m.Bytes)); err != nil {
		return nil, cause(ctx, err)
	}
	return rounds(ctx, c, m)
}

// Stream has the peer send Bytes from its memory over one connection into shared memory here, GiB/s. Into the same memory each time, or, cold, into fresh
// memory that nobody has touched. One stream goes before the first sample.
func (p *Peer) Stream(ctx context.Context, m Memory, cold bool) ([]float64, error) {
	m, err := m.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var dst []byte
	var out []float64
	for i := range 1 + m.Repeats {
		if dst == nil {
			if dst, err = shared(m.Bytes, false); err != nil {
				return nil, err
			}
		}
		v, err := receive(c, dst)
		if cold || err != nil || i == m.Repeats {
			err = errors.Join(err, unix.Munmap(dst))
			dst = nil
		}
		if err != nil {
			return nil, cause(ctx, err)
		}
		if i > 0 {
			out = append(out, v)
		}
	}
	return out, nil
}

// receive asks for as many bytes as dst has, and gives the rate at which they came.
func receive(c net.Conn, dst []byte) (float64, error) {
	begun := time.Now()
	if err := request(c, wantBytes, int64(len(dst))); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(c, dst); err != nil {
		return 0, err
	}
	v := rate(int64(len(dst)), time.Since(begun))
	if last := len(dst) - 1; dst[last] != pattern(last) {
		return 0, fmt.Errorf("the last of %d bytes came as %d", len(dst), dst[last])
	}
	return v, nil
}

func (p *Peer) dial(ctx context.Context) (*tls.Conn, error) {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: peerPatience}, Config: p.config}
	c, err := d.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, fmt.Errorf("floor: dial the peer: %w", err)
	}
	return c.(*tls.Conn), nil
}

// What a request wants.
const (
	wantEcho  = 'e' // of messages of that size, until the connection ends
	wantBytes = 'b' // so many
)

func request(w io.Writer, want byte, n int64) error {
	_, err := w.Write(binary.BigEndian.AppendUint64([]byte{want}, uint64(n)))
	return err
}

// servePeer is the peer's process. It ends with its input.
func servePeer(host string) error {
	in := bufio.NewReader(os.Stdin)
	var id identity
	if err := json.NewDecoder(in).Decode(&id); err != nil {
		return err
	}
	cfg, err := id.config()
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", net.JoinHostPort(host, "0"), cfg)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				if err := serve(c); err != nil {
					fmt.Fprintln(os.Stderr, "floor: peer:", err)
				}
			}()
		}
	}()
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, l.Close())
}

// serve answers requests until the connection ends.
func serve(c net.Conn) error {
	defer c.Close()
	var source []byte
	defer func() {
		if source != nil {
			_ = syscall.Munmap(source)
		}
	}()
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n := int64(binary.BigEndian.Uint64(head[1:]))
		switch {
		case head[0] == wantEcho && n <= maxMessage:
			return echoOn(c, int(n))
		case head[0] != wantBytes:
			return fmt.Errorf("a request for %q of %d bytes", head[0], n)
		}
		if source == nil {
			var err error
			if source, err = anonymous(n); err != nil {
				return err
			}
		}
		for at := int64(0); at < n; at += streamChunk {
			if _, err := c.Write(source[at:min(at+streamChunk, n)]); err != nil {
				return err
			}
		}
	}
}

// streamChunk is how much one write of a stream has.
const streamChunk = 1 << 20

// identity is a certificate that both sides show and trust.
type identity struct{ Certificate, Key []byte }

func newIdentity() (id identity, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return id, err
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{peerName}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	if id.Certificate, err = x509.CreateCertificate(rand.Reader, c, c, key.Public(), key); err != nil {
		return id, err
	}
	id.Key, err = x509.MarshalPKCS8PrivateKey(key)
	return id, err
}

const peerName = "floor"

// config is for either side.
func (id identity) config() (*tls.Config, error) {
	c, err := x509.ParseCertificate(id.Certificate)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(id.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(c)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true, ServerName: peerName, RootCAs: roots,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
		Certificates: []tls.Certificate{{Certificate: [][]byte{id.Certificate}, PrivateKey: key}},
	}, nil
}
