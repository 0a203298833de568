package authority

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// ErrSecret says that the authority's key does not open with this server's secret.
var ErrSecret = errors.New("authority: the secret is not that of the cluster")

// secretName is the file of a control-plane server's directory that has the secret.
const secretName = "cluster.secret"

// Secret is what the control-plane servers of a cluster share, and nobody else has: 32 random bytes.
type Secret [32]byte

// NewSecret draws a secret.
func NewSecret() (s Secret) {
	_, _ = rand.Read(s[:]) // never fails: crypto/rand says so
	return s
}

// Cluster is the id of the cluster that is founded with the secret: random as the secret is, and the same however often founding is tried.
func (s Secret) Cluster() string {
	sum := sha256.Sum256(append([]byte("mobula: id of the cluster: "), s[:]...))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// Format writes nothing of the secret, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("the cluster's secret")) } // the State collects

// ReadSecret reads the secret of a server's directory; fs.ErrNotExist: it has none.
func ReadSecret(dir string) (s Secret, err error) {
	path := filepath.Join(dir, secretName)
	text, err := safefs.ReadFile(path)
	if err != nil {
		return s, err
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(b) != len(s) {
		return s, errs.New(errs.CodeInvalid, "%s, which opens the key of the cluster's authority, is damaged: put it back, or let this server join again", path)
	}
	return Secret(b), nil
}

// Write puts the secret into a server's directory, with mode 0600. When it returns, the secret is on disk.
func (s Secret) Write(dir string) error {
	return safefs.Replace(filepath.Join(dir, secretName), []byte(hex.EncodeToString(s[:])+"\n"))
}

// seal encrypts a private key of the authority. The certificate is bound to it: the sealed key opens beside no other.
func (s Secret) seal(cluster string, certificate []byte, key ed25519.PrivateKey) ([]byte, error) {
	aead, err := s.cipher(cluster)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, key.Seed(), certificate), nil
}

// open decrypts what seal made.
func (s Secret) open(cluster string, certificate, sealed []byte) (ed25519.PrivateKey, error) {
	aead, err := s.cipher(cluster)
	if err != nil {
		return nil, err
	}
	seed, err := aead.Open(nil, nil, sealed, certificate)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%w: %s in this server's directory is of another cluster, or the authority's row is damaged", ErrSecret, secretName)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// cipher is AES-256-GCM with a key derived from the secret. The secret is random, so it needs no slow derivation as a password does.
func (s Secret) cipher(cluster string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, s[:], []byte(cluster), "mobula: key of the authority", 32)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
