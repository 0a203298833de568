package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mobula/internal/errs"
)

const (
	watchEvery = 2 * time.Second
	watchLeast = 100 * time.Millisecond // between two requests: a list takes some of the node's time
)

// view is a command that shows something, once or repeatedly.
type view struct{ every time.Duration }

func (v *view) flag(c *cobra.Command) {
	c.Flags().DurationVarP(&v.every, "watch", "w", 0, "show it again at this interval until interrupted: anew on a terminal, one below the other elsewhere and with --json")
	c.Flags().Lookup("watch").NoOptDefVal = watchEvery.String()
}

// joinWatch turns "--watch 5s" into the one argument "--watch=5s": --watch alone means the default.
func joinWatch(args []string) []string {
	var out []string
	for _, arg := range args {
		if n := len(out); n > 0 && (out[n-1] == "--watch" || out[n-1] == "-w") {
			if _, err := time.ParseDuration(arg); err == nil {
				out[n-1] = "--watch=" + arg
				continue
			}
		}
		out = append(out, arg)
	}
	return out
}

// show prints what fetch gives; with --watch repeatedly until the command is interrupted, which is not an error.
func show[T any](a *app, v *view, c *cobra.Command, fetch func() (T, error), text func(io.Writer, *T)) error {
	one := func() error {
		got, err := fetch()
		if err != nil {
			return err
		}
		err = a.print(got, func(w io.Writer) { text(w, &got) })
		a.warn(a.errOut, unreachable(&got))
		return err
	}
	if !c.Flags().Changed("watch") {
		return one()
	}
	if v.every < watchLeast {
		return errs.New(errs.CodeInvalid, "--watch %v: want %v or more", v.every, watchLeast)
	}
	if s, ok := screenOf(a.out); ok && !a.json {
		one = func() error {
			got, err := fetch()
			if err != nil {
				return err
			}
			if now, ok := screenOf(a.out); ok {
				s = now // its size may have changed
			}
			var body strings.Builder
			s.Writer = &body
			fmt.Fprintf(&body, "%s   every %v, %s\n\n", c.CommandPath(), v.every, time.Now().Format(time.TimeOnly))
			text(s, &got)
			a.warn(s, unreachable(&got))
			// From the top, each line over the one before: no flicker.
			_, err = io.WriteString(a.out, "\x1b[H"+strings.ReplaceAll(s.frame(body.String()), "\n", "\x1b[K\n")+"\x1b[J")
			return err
		}
		if _, err := io.WriteString(a.out, "\x1b[2J"); err != nil {
			return err
		}
	} else if !a.json {
		first := true
		plain := one
		one = func() error {
			if !first {
				fmt.Fprintln(a.out)
			}
			first = false
			return plain()
		}
	}
	return again(a.ctx, v.every, one)
}

// again calls one at intervals until ctx ends.
func again(ctx context.Context, every time.Duration, one func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := one(); ctx.Err() != nil {
			return nil // even if one failed because of that
		} else if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
