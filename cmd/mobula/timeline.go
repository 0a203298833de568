package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"mobula/internal/errs"
	"mobula/internal/state"
)

func (a *app) timeline() *cobra.Command {
	var out, job, node string
	var since time.Duration
	c := &cobra.Command{
		Use: "timeline", Short: "Write what ran when, for Perfetto", Args: cobra.NoArgs,
		Long: `Timeline writes the task events that the node remembers in Chrome's trace format. Open the
file at https://ui.perfetto.dev or in chrome://tracing. In a cluster it has what all nodes
remember, by the clock of the node that is asked.`,
		Example: `  mobula timeline -o run.json
  mobula timeline --job 3 --since 30s -o - | gzip > run.json.gz`,
		RunE: func(*cobra.Command, []string) error {
			r := state.TimelineRequest{Job: job, Node: node}
			if since < 0 {
				return errs.New(errs.CodeInvalid, "--since %v: want 0 or more", since)
			}
			res := timelineWritten{File: out}
			var err error
			if out == "-" {
				err = a.fetchTimeline(a.out, r, since, &res)
			} else if err = a.writeTimeline(out, r, since, &res); err == nil {
				err = a.print(res, func(w io.Writer) {
					fmt.Fprintf(w, "%s written to %s; open it at https://ui.perfetto.dev\n", size(uint64(res.Bytes)), out)
				})
			}
			a.warn(a.errOut, res.Unreachable)
			return err
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "mobula-timeline.json", "file to write; - is standard output")
	c.Flags().StringVar(&job, "job", "", "only this job's tasks")
	nodeFlag(c, &node)
	c.Flags().DurationVar(&since, "since", 0, "only what happened in this time until now (default: all that is remembered)")
	return c
}

// timelineWritten is what is said of a document.
type timelineWritten struct {
	File        string              `json:"file"`
	Bytes       int64               `json:"bytes"`
	Unreachable []state.Unreachable `json:"unreachable,omitempty"`
}

// writeTimeline writes the whole file, or none.
func (a *app) writeTimeline(path string, r state.TimelineRequest, since time.Duration, res *timelineWritten) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".mobula-timeline-*")
	if err != nil {
		return errs.New(errs.CodeInvalid, "--output %q: %v", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // err says more
		}
	}()
	err = a.fetchTimeline(f, r, since, res)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// fetchTimeline reads the document in parts. since counts back from the node's present time; 0 means everything.
func (a *app) fetchTimeline(w io.Writer, r state.TimelineRequest, since time.Duration, res *timelineWritten) error {
	ctx, cancel := context.WithTimeout(a.ctx, a.timeout)
	defer cancel()
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if since > 0 {
		r.Since = a.clockNow() - int64(since)
	}
	for {
		var p state.TimelinePart
		if err := c.ask(ctx, state.MethodTimeline, r, &p); err != nil {
			return err
		}
		res.Unreachable = append(res.Unreachable, p.Unreachable...)
		k, err := w.Write(p.Body)
		res.Bytes += int64(k)
		if err != nil || p.Next == 0 {
			return err
		}
		r.Token, r.Offset = p.Token, p.Next
	}
}
