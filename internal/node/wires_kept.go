package node

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// wiresName is the file of where a node of a cluster listens, as it was told: a start that says nothing of that is as the one before, and never listens at more
// addresses.
const wiresName = "wires.json"

// wiresForm is the form of the file that this release writes.
const wiresForm = 1

// keptWires is the file.
type keptWires struct {
	Form       int    `json:"form"`
	Listen     string `json:"listen,omitempty"`
	Advertise  string `json:"advertise,omitempty"`
	GossipPort int    `json:"gossip_port,omitempty"`
	GCSPort    int    `json:"gcs_port,omitempty"`
	RoutesPort int    `json:"routes_port,omitempty"`
	Towards    string `json:"towards,omitempty"` // the address of the cluster that it joined at: it listens where it reaches that from
}

// kept gives the Wires with what an earlier start was told, unless this one says where the node listens.
func (w Wires) kept(dir string) (*Wires, error) {
	if w.Listen != "" || w.anyPort() {
		return &w, nil
	}
	path := filepath.Join(dir, wiresName)
	data, err := safefs.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &w, nil
	}
	if err != nil {
		return nil, err
	}
	var k keptWires
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, errs.New(errs.CodeInvalid, "%s, which says where the node listens, is damaged: %v; remove it, and say that again with --listen", path, err)
	}
	if k.Form != wiresForm {
		return nil, errs.New(errs.CodeVersion, "%s has form %d, and this release reads form %d", path, k.Form, wiresForm)
	}
	w.Listen, w.Advertise, w.towards = k.Listen, cmp.Or(w.Advertise, k.Advertise), k.Towards
	w.GossipPort, w.GCSPort, w.RoutesPort = cmp.Or(w.GossipPort, k.GossipPort), cmp.Or(w.GCSPort, k.GCSPort), cmp.Or(w.RoutesPort, k.RoutesPort)
	return &w, nil
}

// keep has a later start be as this one.
func (w *Wires) keep(dir string) error {
	if w.anyPort() {
		return nil
	}
	k := keptWires{Form: wiresForm, Listen: w.Listen, Advertise: w.Advertise, GossipPort: w.GossipPort, GCSPort: w.GCSPort, RoutesPort: w.RoutesPort}
	if w.Listen == "" {
		k.Towards = w.reaches()
	}
	data, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", wiresName, err)
	}
	return safefs.Replace(filepath.Join(dir, wiresName), append(data, '\n'))
}

// reaches is an address of the cluster, by which the node's own one is found; empty: none is known.
func (w *Wires) reaches() string {
	if len(w.Join) > 0 {
		return w.Join[0]
	}
	return w.towards
}
