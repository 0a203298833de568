package restarts

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/registry"
)

var recordDir = flag.String("record-directory", "", "have TestADirectoryOfTheReleaseBefore write a directory of this release to this file")

// before is the release whose directory is in testdata.
const before = "0.8"

// estate is what the actor of the directory has references to: in the log, in the store, and spilled.
type estate struct {
	Text  mobula.Ref[string]
	Large []mobula.Ref[[]float64]
}

type heir struct{ of estate }

func (h *heir) Sum(ctx context.Context) (float64, error) {
	text, err := h.of.Text.Get(ctx)
	if err != nil || text != "left to you" {
		return 0, fmt.Errorf("the text is %q: %w", text, err)
	}
	var sum float64
	for i, r := range h.of.Large {
		v, err := r.Get(ctx)
		if err != nil {
			return 0, fmt.Errorf("object %d: %w", i, err)
		}
		sum += v[0] + v[len(v)-1]
	}
	return sum, nil
}

var (
	heirType = mobula.RegisterActor1("e2e/heir", func(_ context.Context, of estate) (*heir, error) { return &heir{of}, nil }, mobula.MaxRestarts(-1))
	heirSum  = mobula.RegisterMethod0(heirType, "Sum", (*heir).Sum)
)

// larges is more than the store has room for: some are spilled.
const (
	larges   = 12
	largeSum = larges * (larges + 1)
)

func init() {
	harness.DriverBodies["bequeath"] = func(ctx context.Context) error {
		text, err := mobula.Put(ctx, "left to you")
		if err != nil {
			return err
		}
		of := estate{Text: text}
		for i := range larges {
			v := make([]float64, 1<<18) // 2 MiB
			for k := range v {
				v[k] = float64(i + 1)
			}
			r, err := mobula.Put(ctx, v)
			if err != nil {
				return err
			}
			of.Large = append(of.Large, r)
		}
		a, err := heirType.Spawn(ctx, mobula.V(of), mobula.Named("e2e", "heir"), mobula.Detached())
		if err != nil {
			return err
		}
		if sum, err := heirSum.Go(ctx, a).Get(ctx); err != nil || sum != largeSum {
			return fmt.Errorf("the sum is %v: %w", sum, err)
		}
		return nil
	}
}

func upgradeConfig(dir string) harness.NodeConfig {
	return harness.NodeConfig{Dir: filepath.Join(dir, "node"), CPUs: 2, Store: 16 << 20, StoreDir: filepath.Join(dir, "store")}
}

// record writes what a node of this release leaves when it is killed, for the test of the next release.
func record(t *testing.T) {
	dir := harness.TempDir(t)
	cfg := upgradeConfig(dir)
	harness.Must(t, os.Mkdir(cfg.StoreDir, 0o700))
	p := harness.MustLaunch(t, cfg)
	harness.LaunchDriver(t, p.Address, "bequeath").Stop(t)
	p.Kill(t)
	describe(t, filepath.Join(cfg.Dir, "jobs", "1.json"))
	out, err := os.Create(*recordDir)
	harness.Must(t, err)
	z := gzip.NewWriter(out)
	w := tar.NewWriter(z)
	harness.Must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() && !e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		h, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		if h.Name, err = filepath.Rel(dir, path); err != nil {
			return err
		}
		if err := w.WriteHeader(h); err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return errors.Join(err, f.Close())
	}))
	harness.Must(t, errors.Join(w.Close(), z.Close(), out.Close()))
}

// A node of this release starts in the directory that one of the release before left when it was killed: its job is there, with the
// detached actor, its name, and what that has references to; new ids are other ones. Where that directory was is of no account.
func TestADirectoryOfTheReleaseBefore(t *testing.T) {
	if *recordDir != "" {
		record(t)
		return
	}
	if !harness.InMounts(t) {
		return
	}
	ctx, cancel := harness.Limit(t)
	defer cancel()
	dir := harness.TempDir(t)
	out, err := exec.Command("tar", "-xzf", filepath.Join("testdata", "directory-"+before+".tar.gz"), "-C", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	cfg := upgradeConfig(dir)
	describe(t, filepath.Join(cfg.Dir, "jobs", "1.json"))
	clock, err := os.ReadFile(filepath.Join(cfg.Dir, "clock"))
	harness.Must(t, err)
	anotherBoot(t, strings.Fields(string(clock))[0]) // the run of the machine in which it was left: memory is trusted
	for life := range 2 {                            // in the second the directory is this release's own
		cfg.Moved = life == 0 // it was elsewhere when it was recorded
		p := harness.MustLaunch(t, cfg)
		c, job := harness.Connect(t, ctx, p)
		a, err := mobula.GetActor[heir](job, "e2e", "heir")
		harness.Must(t, err)
		if sum, err := heirSum.Go(job, a).Get(job); err != nil || sum != largeSum {
			t.Fatalf("life %d: the sum of what the actor holds is %v, %v; want %v", life, sum, err, float64(largeSum))
		}
		st, err := c.Status(job)
		harness.Must(t, err)
		if len(st.Lost) != 0 || len(st.Jobs) < 2 || st.Jobs[0].ID != "1" {
			t.Errorf("life %d: jobs %+v, lost %+v", life, st.Jobs, st.Lost)
		}
		p.Kill(t)
	}
}

// describe has a job's description name this test's executable and its functions: the ones that were there are gone.
func describe(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	harness.Must(t, err)
	var f map[string]any
	harness.Must(t, json.Unmarshal(data, &f))
	exe, err := os.Executable()
	harness.Must(t, err)
	f["exe"], f["functions"] = exe, registry.List()
	delete(f, "environ") // it may have secrets
	data, err = json.Marshal(f)
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(path, data, 0o600))
}
