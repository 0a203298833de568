package shell

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"mobula/gcs"
)

// A node that was its own control plane, and then becomes a server of a cluster, has tables that a clustered server would not find: they are of no
// group. They are moved aside before the first start. If it founds the cluster, their rows are taken along once the tables of the cluster are there; if it
// joins one, its home is another one there, and they are nobody's.

// aloneDir is where they are aside, below the directory of the server's files.
const aloneDir = "alone"

// setAside moves the tables of a server that was not clustered aside.
func setAside(dir string) error {
	tables, aside := filepath.Join(dir, "jetstream"), filepath.Join(dir, aloneDir, "jetstream")
	for _, done := range []string{filepath.Join(dir, filepath.FromSlash(peersFile)), aside} { // it was clustered before, or was killed meanwhile
		if _, err := os.Lstat(done); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if _, err := os.Lstat(tables); err != nil {
		return ignoreMissing(err)
	}
	if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
		return err
	}
	return os.Rename(tables, aside)
}

// carry writes the rows that are aside to the tables, but where there is one already, and removes them there. One that is killed begins again.
func (g *GCS) carry(ctx context.Context) error {
	dir := filepath.Join(g.cfg.Dir, aloneDir)
	if len(g.cfg.Listen.Others) > 0 {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, "jetstream")); err != nil {
		return ignoreMissing(err)
	}
	rows, err := rowsIn(ctx, ServerConfig{Dir: dir, Name: g.cfg.Node, Logger: g.cfg.Logger})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Bucket() == gcs.Nodes {
			continue // the node writes its own again
		}
		if a := g.tables.Do(ctx, gcs.Write{Record: r}); a.Err != nil {
			return a.Err
		}
	}
	return os.RemoveAll(dir)
}

// rowsIn starts a server for a moment and reads its tables.
func rowsIn(ctx context.Context, cfg ServerConfig) (rows []gcs.Record, err error) {
	srv, err := StartServer(cfg)
	if err != nil {
		return nil, err
	}
	defer srv.Close()
	nc, err := srv.Connect(cfg.Name)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	tables, err := Open(ctx, nc, 1)
	if err != nil {
		return nil, err
	}
	defer tables.Close()
	var mu sync.Mutex
	err = tables.Watch(ctx, ctx, func(c gcs.Changed) {
		mu.Lock()
		defer mu.Unlock()
		if c.Record != nil && c.Key == c.Record.Key() {
			rows = append(rows, c.Record)
		}
	})
	mu.Lock()
	defer mu.Unlock()
	return rows, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
