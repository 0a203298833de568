package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mobula/gcs"
	"mobula/internal/ids"
	"mobula/internal/safefs"
)

// nameFile is the file of what a kept node was called last, behind the identity that was called so: a start that says no name goes on with it. In a copied directory
// that was given an identity of its own it says nothing.
const nameFile = "name"

// keptName is what the node in a directory is called that is not told.
func keptName(dir, identity string) (string, error) {
	b, err := safefs.ReadFile(filepath.Join(dir, nameFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", dirError(dir, err)
	}
	if of, name, ok := strings.Cut(strings.TrimSpace(string(b)), " "); ok && of == identity {
		return name, nil
	}
	return ownName(identity), nil
}

// ownName is what a node is called that was never told: by its host, and by its identity, for which no other node has it.
func ownName(identity string) string { return hostName() + "-" + identity[:8] }

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return host
}

// name settles what the node is called, and has a later start in its directory know.
func (n *Node) name() (err error) {
	switch {
	case !n.cfg.Keep:
		def(&n.cfg.Name, fmt.Sprintf("%s-%d", hostName(), os.Getpid()))
		return nil
	case n.cfg.Name == "":
		if n.cfg.Name, err = keptName(n.dir, n.identity); err != nil {
			return err
		}
		n.renames = n.cfg.Name != ownName(n.identity)
	}
	return n.keepName()
}

func (n *Node) keepName() error {
	if err := safefs.Replace(filepath.Join(n.dir, nameFile), []byte(n.identity+" "+n.cfg.Name+"\n")); err != nil {
		return dirError(n.dir, err)
	}
	return nil
}

// rename gives the node another name where the one that it goes on with is a living node's by now. Nothing has said yet what it is called.
func (n *Node) rename(ctx context.Context) error {
	if !n.renames || !n.wired.on() && !n.control.elsewhere() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tableTime)
	defer cancel()
	rows, err := n.control.nodes(ctx)
	if err != nil || !hasName(rows, n.cfg.Name, n.numbers.Row().Home) { // without an answer there are two of that name: their homes tell them apart
		return nil
	}
	was := n.cfg.Name
	n.cfg.Name = ownName(n.identity)
	n.inspect.Name = n.cfg.Name
	n.obs.Rename(n.cfg.Name)
	n.cfg.Logger.Warn("another node has the name that this one had: it is called by its host now; --name gives it another name", "name", n.cfg.Name, "was", was)
	return n.keepName()
}

// hasName tells whether another node that may live has the name.
func hasName(rows []gcs.NodeRecord, name string, home ids.Home) bool {
	for i := range rows {
		if r := &rows[i]; r.Name == name && r.Home != home && !r.Dead {
			return true
		}
	}
	return false
}
