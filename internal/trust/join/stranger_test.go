package join

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/release"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
)

// A server that the token's authority does not vouch for gets a ClientHello and an alert: whoever it is, nothing that it can decrypt, and no byte of
// the token.
func TestAWrongServerLearnsNothing(t *testing.T) {
	w, rogue := newWorld(t), newWorld(t)
	tok := w.token(t, authority.Making{Role: trust.Data})
	expired := w.Live(t, trust.ControlPlane, 101, 1)
	w.Clock.Pass(8 * day)
	rogue.Clock.Pass(8 * day)
	// It shows the true authority's certificate, which everybody can get, below its own.
	borrowed := rogue.Node(t, trust.ControlPlane, 100, 1)
	borrowed.Chain = append(borrowed.Chain, w.Node(t, trust.Data, 1, 1).Roots...)
	shows, err := credentials.NewLive(borrowed, rogue.Clock.Wall)
	must(t, err)
	for _, c := range []struct {
		what string
		live *credentials.Live
		want error
	}{
		{"another authority", rogue.Live(t, trust.ControlPlane, 100, 1), trust.ErrAuthority},
		{"another authority that shows the true one", shows, trust.ErrAuthority},
		{"a data node of the cluster", w.Live(t, trust.Data, 1, 1), trust.ErrRole},
		{"a driver of the cluster", w.Live(t, trust.Driver, 1, 1), trust.ErrRole},
		{"a server whose certificate has expired", expired, trust.ErrExpired},
	} {
		dialed, accepted := pair(t)
		cfg := c.live.Open()
		cfg.NextProtos = []string{Protocol}
		read := make(chan []byte, 1)
		go func() {
			conn := tls.Server(accepted, cfg)
			defer conn.Close()
			_ = conn.Handshake()
			b, _ := io.ReadAll(conn)
			read <- b
		}()
		wire := &recorded{Conn: dialed}
		_, err := Ask(t.Context(), wire, tok, wish(t, trust.Data), w.Clock.Wall)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		if got := <-read; len(got) != 0 {
			t.Errorf("%s reads %q", c.what, got)
		}
		sent := wire.all()
		if bytes.Contains(sent, []byte(tok.ID)) || bytes.Contains(sent, []byte("mbl1")) {
			t.Errorf("%s sees the token on the wire", c.what)
		}
		if rest := afterHello(t, sent); len(rest) > 40 { // a record for compatibility, and an alert of 2 bytes, encrypted
			t.Errorf("%s gets %d bytes after the ClientHello: %x", c.what, len(rest), rest)
		}
	}
	if rows, err := w.Tokens(t.Context()); err != nil || rows[0].Uses != 0 {
		t.Errorf("the token was used: %+v, %v", rows, err)
	}
}

// afterHello is what a node has sent after its first message.
func afterHello(t testing.TB, sent []byte) []byte {
	t.Helper()
	if len(sent) < 5 || sent[0] != 22 {
		t.Fatalf("it has sent %x", sent)
	}
	return sent[5+binary.BigEndian.Uint16(sent[3:]):]
}

// A server that accepts and never answers, or stops in the middle, is given up when the context ends.
func TestAServerThatNeverAnswers(t *testing.T) {
	w := newWorld(t)
	tok := w.token(t, authority.Making{Role: trust.Data})
	for what, serve := range map[string]func(net.Conn){
		"says nothing":              func(net.Conn) {},
		"shakes hands and is quiet": func(c net.Conn) { _ = tls.Server(c, w.server.Config()).Handshake() },
		"sends half an answer": func(c net.Conn) {
			conn := tls.Server(c, w.server.Config())
			_, _ = conn.Write([]byte{0, 0, 1, 0, '{'})
		},
	} {
		dialed, accepted := pair(t)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			serve(accepted)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := Ask(ctx, dialed, tok, wish(t, trust.Data), w.Clock.Wall); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
		_ = accepted.Close()
		<-ended
	}
	// One that speaks no TLS.
	dialed, accepted := pair(t)
	go func() {
		_, _ = accepted.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		_ = accepted.Close()
	}()
	var record tls.RecordHeaderError
	if _, err := Ask(t.Context(), dialed, tok, wish(t, trust.Data), w.Clock.Wall); !errors.As(err, &record) {
		t.Errorf("plain text: %v", err)
	}
}

// A stranger that says nothing, or nonsense, holds a connection no longer than the context, and gets no certificate.
func TestAStrangerAtTheServer(t *testing.T) {
	w := newWorld(t)
	frame := func(m any) []byte {
		var b bytes.Buffer
		must(t, write(&b, m))
		return b.Bytes()
	}
	for what, c := range map[string]struct {
		says []byte
		want error
		text string
	}{
		"nothing":         {nil, context.DeadlineExceeded, ""},
		"half a length":   {[]byte{0, 0}, context.DeadlineExceeded, ""},
		"half a question": {[]byte{0, 0, 0, 9, '{'}, context.DeadlineExceeded, ""},
		"a huge question": {[]byte{0xff, 0xff, 0xff, 0xff}, errs.ErrProtocol, "4294967295 bytes"},
		"no JSON":         {[]byte{0, 0, 0, 1, 'x'}, errs.ErrProtocol, ""},
		"an empty object": {frame(struct{}{}), errs.ErrVersion, "version 0"},
		"a later release": {frame(request{Version: 2, Release: "9.9.9"}), errs.ErrVersion, "9.9.9"},
		"no request":      {frame(request{Version: 1, Token: "mbl1.a.b.c"}), errs.ErrProtocol, ""},
		"HTTP":            {[]byte("GET / HTTP/1.1\r\n\r\n"), errs.ErrProtocol, ""},
	} {
		dialed, accepted := pair(t)
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
		if errors.Is(c.want, context.DeadlineExceeded) {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		}
		served := make(chan error, 1)
		go func() { served <- w.server.Serve(ctx, tls.Server(accepted, w.server.Config())) }()
		conn := tls.Client(dialed, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{Protocol}})
		_, _ = conn.Write(c.says)
		err := <-served
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v %q", what, err, c.want, c.text)
		}
		if errors.Is(err, errs.ErrVersion) && !strings.Contains(err.Error(), release.Version) {
			t.Errorf("%s: both releases are not named: %v", what, err)
		}
		if got, _ := io.ReadAll(conn); bytes.Contains(got, []byte("chain")) {
			t.Errorf("%s gets %q", what, got)
		}
		cancel()
	}
	// One that speaks no TLS.
	dialed, accepted := pair(t)
	go func() { _, _ = dialed.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }()
	var record tls.RecordHeaderError
	if err := w.server.Serve(t.Context(), tls.Server(accepted, w.server.Config())); !errors.As(err, &record) {
		t.Errorf("plain text: %v", err)
	}
}

// Whatever a stranger asks, it is answered, and gets no certificate.
func FuzzQuestion(f *testing.F) {
	w := newWorld(f)
	good, err := json.Marshal(request{Version: version, Token: w.token(f, authority.Making{Role: trust.Data}).Text()[:20], Node: "n", Role: trust.Data})
	must(f, err)
	f.Add(good)
	f.Add([]byte(`{"version":1,"request":"AAAA","claim":{"Last":{"home":1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var q request
		if read(bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)), &q) != nil {
			return
		}
		a, err := w.server.answer(t.Context(), q, nil, nil)
		if err == nil || len(a.Chain) > 0 {
			t.Errorf("%s is answered %+v", data, a)
		}
		if told := tell(err); told.err() == nil || told.Text == "" {
			t.Errorf("%v is told as %+v", err, told)
		}
	})
}

// Whatever a server answers, a node takes nothing that does not prove its own key.
func FuzzAnswer(f *testing.F) {
	w := newWorld(f)
	asked := wish(f, trust.ControlPlane)
	g, err := w.ask(f, w.server, w.token(f, authority.Making{Role: trust.ControlPlane}), asked)
	must(f, err)
	good := answer{Version: version, Chain: raw(g.Chain), Roots: raw(g.Roots), Row: g.Row, Secret: g.Secret[:], Enrolment: g.Enrolment}
	if _, err := granted(good, asked, w.Clock.Wall()); err != nil {
		f.Fatal(err)
	}
	data, err := json.Marshal(good)
	must(f, err)
	f.Add(data)
	f.Add([]byte(`{"version":1,"refused":{"reason":"x","text":"y"}}`))
	asked.Key = trusttest.NewKey(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var a answer
		if json.Unmarshal(data, &a) != nil {
			return
		}
		if got, err := granted(a, asked, w.Clock.Wall()); err == nil {
			t.Errorf("%s is taken as %+v", data, got.Row)
		}
		if a.Refused != nil && a.Refused.err() == nil {
			t.Errorf("%+v is no error", a.Refused)
		}
	})
}
