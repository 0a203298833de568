package credentials

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"mobula/internal/errs"
)

const (
	keyBlock         = "PRIVATE KEY"
	certificateBlock = "CERTIFICATE"
)

// encode is the form of the file: the key, the node's certificate, cross-signatures, and roots, which have signed themselves.
func encode(c Credentials) ([]byte, error) {
	out, err := encodeKey(c.Key)
	if err != nil {
		return nil, err
	}
	for _, one := range slices.Concat(c.Chain, c.Roots) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: one.Raw})...)
	}
	return out, nil
}

// decode is encode backwards.
func decode(text []byte) (c Credentials, err error) {
	key, rest := pem.Decode(text)
	if c.Key, err = parseKey(key); err != nil {
		return Credentials{}, err
	}
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return Credentials{}, err
		}
		if len(c.Chain) > 0 && bytes.Equal(one.RawIssuer, one.RawSubject) {
			c.Roots = append(c.Roots, one)
		} else {
			c.Chain = append(c.Chain, one)
		}
	}
	return c, c.Check()
}

func encodeKey(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// parseKey reads a key. Its errors have nothing of it.
func parseKey(block *pem.Block) (ed25519.PrivateKey, error) {
	if block == nil || block.Type != keyBlock {
		return nil, errors.New("it does not begin with a key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if private, ok := key.(ed25519.PrivateKey); ok && err == nil {
		return private, nil
	}
	return nil, errors.New("its key is not of Ed25519")
}

// damaged names a file that cannot be read.
func damaged(path string, err error) error {
	return errs.New(errs.CodeInvalid, "%s, by which the node proves that it is of its cluster, is damaged: %v; put it back, or remove it and join again",
		path, err)
}
