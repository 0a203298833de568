package credentials

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mobula/internal/safefs"
)

// The files of a node's directory, each with mode 0600.
const (
	fileName = "credentials.pem"
	keyName  = "credentials.key" // of the next certificate, while the authority is asked for it
)

// Dir keeps credentials in a node's directory. One process at a time uses it.
type Dir struct {
	path string
	disk disk
}

// disk is what Dir does to files. Replace is atomic, and on disk when it returns.
type disk interface {
	ReadFile(path string) ([]byte, error)
	Replace(path string, data []byte) error
	Remove(path string) error
}

// InDir gives the credentials of a node's directory.
func InDir(path string) Dir { return Dir{path: path, disk: files{}} }

// Read reads the credentials; fs.ErrNotExist: the node has none.
func (d Dir) Read() (Credentials, error) {
	path := filepath.Join(d.path, fileName)
	text, err := d.disk.ReadFile(path)
	if err != nil {
		return Credentials{}, err
	}
	c, err := decode(text)
	if err != nil {
		return Credentials{}, damaged(path, err)
	}
	return c, nil
}

// NextKey gives the key of the next certificate. It is on disk when NextKey returns, and stays the same until Write has kept its certificate.
func (d Dir) NextKey() (ed25519.PrivateKey, error) {
	path := filepath.Join(d.path, keyName)
	key, err := d.readKey(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		used, err := d.uses(key)
		if err != nil {
			return nil, err
		}
		if !used {
			return key, nil
		}
	}
	if _, key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return key, d.disk.Replace(path, text)
}

// readKey reads the file of the next key.
func (d Dir) readKey(path string) (ed25519.PrivateKey, error) {
	text, err := d.disk.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	key, err := parseKey(block)
	if err != nil {
		return nil, damaged(path, err)
	}
	return key, nil
}

// uses tells whether the credentials have a key: then a kill came between the two steps of Write.
func (d Dir) uses(key ed25519.PrivateKey) (bool, error) {
	c, err := d.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && c.Key.Equal(key), err
}

// Write keeps credentials whose key NextKey gave.
func (d Dir) Write(c Credentials) error {
	if err := c.Check(); err != nil {
		return err
	}
	text, err := encode(c)
	if err != nil {
		return err
	}
	if err := d.disk.Replace(filepath.Join(d.path, fileName), text); err != nil {
		return err
	}
	if err := d.disk.Remove(filepath.Join(d.path, keyName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// files is the disk itself.
type files struct{}

func (files) ReadFile(path string) ([]byte, error)   { return safefs.ReadFile(path) }
func (files) Replace(path string, data []byte) error { return safefs.Replace(path, data) }
func (files) Remove(path string) error               { return os.Remove(path) }
