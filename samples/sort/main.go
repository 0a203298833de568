package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"

	"mobula"
	_ "mobula/objectstore/spill/s3" // -spill may name a bucket
)

// config is what the flags say.
type config struct {
	data, store int64 // bytes
	partitions  int
	workers     int
	embedded    bool
	floor       bool
	json        bool
	spill       string
	sample      time.Duration
}

func main() {
	if mobula.WorkerMain() {
		return
	}
	cfg, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sort:", err)
		os.Exit(2)
	}
	opts := []mobula.StartOption{mobula.WithStore(cfg.store), mobula.WithCPUs(float64(cfg.workers))}
	if !cfg.embedded {
		opts = append(opts, mobula.WithProcesses())
	}
	if cfg.spill != "" {
		opts = append(opts, mobula.WithSpill(cfg.spill))
	}
	mobula.Main(func(ctx context.Context, c *mobula.Cluster) error {
		watch := newWatch(c, cfg.sample)
		r, err := run(ctx, cfg, watch, newProgress(os.Stderr, !cfg.json))
		watch.stop(&r.usage)
		if err != nil {
			return err
		}
		if cfg.floor {
			if r.Floor, err = floorTime(ctx, cfg, r.usage); err != nil {
				return err
			}
			r.Ratio = r.Wall / r.Floor
		}
		if cfg.json {
			return json.NewEncoder(os.Stdout).Encode(r)
		}
		fmt.Print(r)
		return nil
	}, opts...)
}

func parse(args []string, out io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("sort", flag.ContinueOnError)
	fs.SetOutput(out)
	size := fs.String("size", env("SIZE", "2GiB"), "of the data")
	store := fs.String("store", env("STORE", "512MiB"), "of the object store: the memory limit")
	fs.IntVar(&cfg.partitions, "partitions", envInt("PARTITIONS", 100), "of the sorted output")
	fs.IntVar(&cfg.workers, "workers", envInt("WORKERS", 2), "tasks that run at once")
	fs.BoolVar(&cfg.embedded, "embedded", false, "run tasks in goroutines instead of worker processes")
	fs.BoolVar(&cfg.floor, "floor", false, "also measure a plain program of two goroutines that does the same work")
	fs.BoolVar(&cfg.json, "json", false, "print one JSON object, and no progress")
	fs.StringVar(&cfg.spill, "spill", "", "directory or URL to spill to; default: the node's own")
	fs.DurationVar(&cfg.sample, "sample", 100*time.Millisecond, "between looks at the memory used; 0: never")
	if err := fs.Parse(args); err != nil {
		return cfg, err
	}
	for _, b := range []struct {
		name, text string
		dst        *int64
	}{{"size", *size, &cfg.data}, {"store", *store, &cfg.store}} {
		n, err := humanize.ParseBytes(b.text)
		if err != nil || n < recordSize || n > 1<<50 {
			return cfg, fmt.Errorf("-%s %q: want a size, as 512MiB", b.name, b.text)
		}
		*b.dst = int64(n)
	}
	if cfg.partitions < 1 || cfg.workers < 1 {
		return cfg, fmt.Errorf("-partitions %d -workers %d: want at least 1 of each", cfg.partitions, cfg.workers)
	}
	return cfg, nil
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func envInt(name string, otherwise int) int {
	n := otherwise
	if _, err := fmt.Sscan(os.Getenv(name), &n); err != nil {
		return otherwise
	}
	return n
}
