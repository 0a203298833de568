package credentials

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/trust"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// signer is a small authority.
type signer struct {
	root *x509.Certificate
	key  ed25519.PrivateKey
}

func newSigner(t testing.TB) signer {
	t.Helper()
	s := signer{}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	s.key = key
	s.root = s.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, MaxPathLen: 1, KeyUsage: x509.KeyUsageCertSign}, nil, key.Public())
	return s
}

func (s signer) sign(t testing.TB, template, parent *x509.Certificate, key any) *x509.Certificate {
	t.Helper()
	now := time.Now()
	template.SerialNumber = big.NewInt(now.UnixNano())
	template.NotBefore, template.NotAfter, template.BasicConstraintsValid = now.Add(-trust.Tolerance), now.Add(time.Hour), true
	if parent == nil {
		parent = template
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key, s.key)
	must(t, err)
	c, err := x509.ParseCertificate(raw)
	must(t, err)
	return c
}

// certify gives a node's key a certificate.
func (s signer) certify(t testing.TB, key ed25519.PrivateKey) Credentials {
	t.Helper()
	uri, err := url.Parse("mobula://abc/data/3/7")
	must(t, err)
	leaf := s.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "n3"}, URIs: []*url.URL{uri}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, s.root, key.Public())
	return Credentials{Key: key, Chain: []*x509.Certificate{leaf}, Roots: []*x509.Certificate{s.root}}
}

func TestCredentialsAreReadAsTheyWereWritten(t *testing.T) {
	s, d := newSigner(t), InDir(t.TempDir())
	if _, err := d.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a node without: %v", err)
	}
	key, err := d.NextKey()
	must(t, err)
	if again, err := d.NextKey(); err != nil || !again.Equal(key) {
		t.Errorf("asked again the key is another one: %v", err)
	}
	modes := func(want ...string) {
		t.Helper()
		entries, err := os.ReadDir(d.path)
		must(t, err)
		var got []string
		for _, e := range entries {
			info, err := e.Info()
			must(t, err)
			got = append(got, fmt.Sprintf("%s %o", e.Name(), info.Mode().Perm()))
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("the directory has %q, want %q", got, want)
		}
	}
	modes("credentials.key 600")
	want := s.certify(t, key)
	must(t, d.Write(want))
	modes("credentials.pem 600")
	got, err := d.Read()
	must(t, err)
	if !got.Key.Equal(key) || len(got.Chain) != 1 || len(got.Roots) != 1 || !got.Chain[0].Equal(want.Chain[0]) || !got.Roots[0].Equal(want.Roots[0]) {
		t.Errorf("read %d and %d certificates", len(got.Chain), len(got.Roots))
	}
	if next, err := d.NextKey(); err != nil || next.Equal(key) {
		t.Errorf("the next certificate is of the same key: %v", err)
	}
}

// What does not belong together is neither written nor read, and no error has the key.
func TestCredentialsThatProveNothing(t *testing.T) {
	s, d := newSigner(t), InDir(t.TempDir())
	key, err := d.NextKey()
	must(t, err)
	good := s.certify(t, key)
	_, other, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	for what, c := range map[string]Credentials{
		"nothing":           {},
		"another key":       {Key: other, Chain: good.Chain, Roots: good.Roots},
		"no root":           {Key: key, Chain: good.Chain},
		"another authority": {Key: key, Chain: good.Chain, Roots: []*x509.Certificate{newSigner(t).root}},
		"a root as a node":  {Key: s.key, Chain: []*x509.Certificate{s.root}, Roots: good.Roots},
	} {
		if err := d.Write(c); !errors.Is(err, errs.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, d.Write(good))
	path := filepath.Join(d.path, fileName)
	text, err := os.ReadFile(path)
	must(t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	for what, damage := range map[string][]byte{
		"empty":                     nil,
		"half":                      text[:len(text)/2],
		"no key":                    text[bytes.Index(text, []byte("-----BEGIN CERT")):],
		"another key":               append(bytes.Clone(must2(encodeKey(other))), text[bytes.Index(text, []byte("-----BEGIN CERT")):]...),
		"the key with a wrong byte": bytes.Replace(text, lines[1][:8], []byte("AAAAAAAA"), 1),
	} {
		must(t, os.WriteFile(path, damage, 0o600))
		_, err := d.Read()
		if !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), string(lines[1][20:40])) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(d.path, keyName), []byte("x"), 0o600))
	if _, err := d.NextKey(); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a damaged next key: %v", err)
	}
}

func must2(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// killed is a disk of a process that is killed after some steps. A Replace that is killed has replaced the file or not.
type killed struct {
	files map[string][]byte
	left  int // steps until the kill
}

var errKilled = errors.New("killed")

func (k *killed) ReadFile(path string) ([]byte, error) {
	if b, ok := k.files[path]; ok {
		return b, nil
	}
	return nil, fs.ErrNotExist
}

func (k *killed) step(do func()) error {
	if k.left--; k.left < 0 {
		return errKilled
	}
	do()
	if k.left--; k.left < 0 {
		return errKilled
	}
	return nil
}

func (k *killed) Replace(path string, data []byte) error {
	return k.step(func() { k.files[path] = bytes.Clone(data) })
}

func (k *killed) Remove(path string) error {
	if _, ok := k.files[path]; !ok {
		return fs.ErrNotExist
	}
	return k.step(func() { delete(k.files, path) })
}

// A node that is killed between any two steps has whole credentials, the old ones or the new ones, and asks for the same key until it has them. A
// token for one use is enough: the authority certifies one key for it.
func TestAKillBetweenAnyTwoSteps(t *testing.T) {
	s := newSigner(t)
	was := &killed{files: make(map[string][]byte), left: 1 << 30}
	d := Dir{path: "n", disk: was}
	key, err := d.NextKey()
	must(t, err)
	must(t, d.Write(s.certify(t, key)))
	for _, before := range []map[string][]byte{{}, was.files} {
		for steps := 0; ; steps++ {
			disk := &killed{files: maps.Clone(before), left: steps}
			d := Dir{path: "n", disk: disk}
			var certified ed25519.PrivateKey
			certify := func() error {
				key, err := d.NextKey()
				if err != nil {
					return err
				}
				if certified == nil {
					certified = key
				}
				if !key.Equal(certified) {
					t.Errorf("killed after %d steps it asks for another key", steps)
				}
				return d.Write(s.certify(t, key))
			}
			err := certify()
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			disk.left = 1 << 30
			now, readErr := d.Read()
			switch {
			case errors.Is(readErr, fs.ErrNotExist) && len(before) == 0:
			case readErr != nil:
				t.Errorf("killed after %d steps: %v", steps, readErr)
			case certified != nil && now.Key.Equal(certified): // it has what it asked for
				next, err := d.NextKey()
				if err != nil || next.Equal(certified) {
					t.Errorf("killed after %d steps the next key is the same: %v", steps, err)
				}
				if err == nil {
					must(t, d.Write(s.certify(t, next)))
				}
			}
			if certified == nil || readErr != nil || !now.Key.Equal(certified) {
				must(t, certify())
				if now, err := d.Read(); err != nil || !now.Key.Equal(certified) {
					t.Errorf("killed after %d steps, then: %v", steps, err)
				}
			}
			if err == nil {
				if steps != 6 {
					t.Errorf("all was done in %d steps", steps)
				}
				break
			}
		}
	}
}
