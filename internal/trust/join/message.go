package join

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/release"
	"mobula/internal/trust"
)

// Protocol is what a connection is for, by ALPN.
const Protocol = "mobula-join"

// version is of the messages. A field may be new without another version: who does not know it passes over it.
const version = 1

// Timeout bounds an exchange.
const Timeout = 30 * time.Second

// maxMessage bounds what is read from a stranger.
const maxMessage = 64 << 10

// request is the question.
type request struct {
	Version int            `json:"version"`
	Release string         `json:"release"`
	Token   string         `json:"token,omitempty"` // empty: the certificate of the connection is to be renewed
	Request []byte         `json:"request"`         // for a certificate, PKCS #10
	Node    string         `json:"node"`            // the name it wishes
	Cluster string         `json:"cluster,omitempty"`
	Address string         `json:"address"` // where it says that other nodes reach it; of a node that joins
	Role    trust.Role     `json:"role"`
	Claim   register.Claim `json:"claim"`
}

// answer is the answer.
type answer struct {
	Version int          `json:"version"`
	Release string       `json:"release"`
	Refused *refusal     `json:"refused,omitempty"`
	Chain   [][]byte     `json:"chain,omitempty"` // the node's certificate first
	Roots   [][]byte     `json:"roots,omitempty"`
	Row     register.Row `json:"row"`
	Secret  []byte       `json:"secret,omitempty"` // of the cluster, for a control-plane server
	Enrolment
}

// Enrolment is what a node of the cluster must know.
type Enrolment struct {
	GossipKeys [][]byte    `json:"gossip_keys"` // of the membership; the first one encrypts
	Servers    []Addresses `json:"servers"`     // of the control-plane servers
}

// Addresses are where a control-plane server listens: each a host and a port.
type Addresses struct {
	Address string `json:"address"` // for joins, messages and objects
	GCS     string `json:"gcs"`     // for clients of the tables
	Routes  string `json:"routes"`  // for other servers
	Gossip  string `json:"gossip"`
}

// refusal is an error in an answer.
type refusal struct {
	Reason string    `json:"reason,omitempty"` // of package trust
	Code   errs.Code `json:"code,omitempty"`
	Text   string    `json:"text"`
}

// tell is an error as the other side may know it.
func tell(err error) *refusal {
	var refused *trust.Refused
	var ours *errs.Error
	switch {
	case errors.As(err, &refused):
		return &refusal{Reason: refused.Reason(), Text: refused.Text}
	case errors.As(err, &ours) && ours.Code != errs.CodeComponentFailed: // which is about this machine
		return &refusal{Code: ours.Code, Text: ours.Msg}
	}
	return &refusal{Code: errs.CodeComponentFailed, Text: "the control plane cannot answer now: ask again, or ask another server"}
}

// err is tell backwards.
func (r *refusal) err() error {
	if r.Reason != "" {
		return trust.Told(r.Reason, r.Text)
	}
	return errs.New(r.Code, "%s", r.Text)
}

// speaks refuses another version of the messages.
func speaks(theirs int, rel string) error {
	if theirs == version {
		return nil
	}
	return errs.New(errs.CodeVersion, "this side speaks version %d of joining (release %s), the other one version %d (release %.32q): use one release",
		version, release.Version, theirs, rel)
}

// write writes a message.
func write(w io.Writer, m any) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if len(data) > maxMessage {
		return errs.New(errs.CodeProtocol, "a message of joining has %d bytes, at most %d", len(data), maxMessage)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}

// read reads a message.
func read(r io.Reader, m any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return errs.New(errs.CodeProtocol, "a message of joining has %d bytes, at most %d", n, maxMessage)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, m); err != nil {
		return errs.New(errs.CodeProtocol, "a message of joining cannot be read: %v", err)
	}
	return nil
}

// bound ends all reads and writes of a connection with a context, and after Timeout.
func bound(ctx context.Context, conn net.Conn) (bounded context.Context, end func()) {
	bounded, cancel := context.WithTimeout(ctx, Timeout)
	stop := context.AfterFunc(bounded, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // else it is closed already
	return bounded, func() {
		stop()
		cancel()
	}
}

// why names what an exchange ended with: the context, if that was it.
func why(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%s: %w", what, err)
}
