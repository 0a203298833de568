package shell

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/memberlist"

	"mobula/internal/trust"
)

// ErrRing is wrapped when the keys of the gossip cannot be these.
var ErrRing = errors.New("ring of gossip keys")

// Keys is the ring of keys: one that encrypts, and during a rotation another one that is only read with. A rotation gives the next key to every node, then every
// node encrypts with it, then the old one goes: at each moment every node can read what every other one writes (trust.GossipRow).
type Keys struct {
	mu   sync.Mutex // held over a change, so that a check and what follows it are one
	ring *memberlist.Keyring
}

// newKeys makes a ring; of no keys it is nil, and nothing is encrypted.
func newKeys(keys [][]byte) (*Keys, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	ring, err := memberlist.NewKeyring(nil, bytes.Clone(keys[0]))
	if err != nil {
		return nil, err
	}
	k := &Keys{ring: ring}
	return k, k.Set(keys)
}

// Set has the ring consist of these keys, of which the first one encrypts. They may be any: a node that was away comes back with keys that are gone.
//
// Memberlist shifts the keys behind one that it removes, in a slice that its readers share. So the ring never has more than two, and the one that goes is the
// last: nothing is shifted.
func (k *Keys) Set(keys [][]byte) error {
	if k == nil {
		return fmt.Errorf("%w: the gossip is not encrypted; start the nodes with a key", ErrRing)
	}
	if err := checkKeys(keys); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.has(keys[0]) {
		if err := errors.Join(k.dropSecond(), k.ring.AddKey(bytes.Clone(keys[0]))); err != nil {
			return err
		}
	}
	if err := k.ring.UseKey(keys[0]); err != nil {
		return fmt.Errorf("%w: %w", ErrRing, err)
	}
	if len(keys) == 2 && k.has(keys[1]) {
		return nil
	}
	if err := k.dropSecond(); err != nil || len(keys) == 1 {
		return err
	}
	return k.ring.AddKey(bytes.Clone(keys[1]))
}

// has tells whether a key is in the ring. k.mu is held.
func (k *Keys) has(key []byte) bool {
	for _, one := range k.ring.GetKeys() {
		if bytes.Equal(one, key) {
			return true
		}
	}
	return false
}

// dropSecond removes the key that does not encrypt, if there is one. k.mu is held.
func (k *Keys) dropSecond() error {
	keys := k.ring.GetKeys()
	if len(keys) < 2 {
		return nil
	}
	return k.ring.RemoveKey(keys[1])
}

// List gives the fingerprints of the keys: first of the one that encrypts.
func (k *Keys) List() []string {
	if k == nil {
		return nil
	}
	return trust.Fingerprints(k.ring.GetKeys())
}

// checkKeys refuses what is no ring.
func checkKeys(keys [][]byte) error {
	if len(keys) < 1 || len(keys) > 2 || len(keys) == 2 && bytes.Equal(keys[0], keys[1]) {
		return fmt.Errorf("%w: %d keys; there are one or two different ones", ErrRing, len(keys))
	}
	for _, one := range keys {
		if err := memberlist.ValidateKey(one); err != nil {
			return fmt.Errorf("%w: %w", ErrRing, err)
		}
	}
	return nil
}
