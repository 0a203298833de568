package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mobula/internal/errs"
	"mobula/internal/steady"
)

// The exit codes; doc.go says what they mean.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNoNode      = 3
	exitNotFound    = 4
	exitTimeout     = 5
	exitRunning     = 6
	exitInterrupted = 130
)

// app is one run of the command.
type app struct {
	ctx         context.Context
	out, errOut io.Writer
	environ     []string
	address     string
	json        bool
	timeout     time.Duration
	now         func() int64 // nil: by the clock of the last node that was asked
	clock       steady.Clock // of that node
}

const rootLong = `Mobula runs tasks, actors and shared-memory objects on one machine, or on several that are a
cluster.

A node is one process with its workers. Programs join it with mobula.Connect, or have one
inside with mobula.Start. This command starts and stops nodes and shows what they do: whichever
node of a cluster it asks, it tells of all.

Exit codes: 0 done; 1 failed; 2 wrong command, flag, configuration or argument; 3 no node is
running at the address; 4 what was asked for is not known; 5 not done in time; 6 a node is
running there already; 130 interrupted.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "mobula", Short: "Start nodes, stop them, and see what they do", Long: rootLong,
		Example: `  mobula start --detach                # a node in the background
  mobula cluster local -n 3 --detach   # three nodes, which are a cluster
  mobula status                        # the node at a glance
  mobula list tasks --filter state=RUNNING
  mobula list tasks --watch            # the newest, again and again
  mobula explain 0000000107e4...       # why a task waits, or who holds an object
  mobula cancel 0000000107e4...        # and mobula kill ACTOR
  mobula stop`,
		SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVar(&a.address, "address", "", "socket of the node, or its directory (default: MOBULA_ADDRESS, else the node in MOBULA_DIR, else this user's node)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.PersistentFlags().DurationVar(&a.timeout, "timeout", time.Minute, "give up after this time")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return errs.New(errs.CodeInvalid, "%v; see %s --help", err, c.CommandPath())
	})
	root.AddCommand(a.start(), a.stop(), a.status(), a.list(), a.memory(), a.explain(), a.cancel(), a.kill(), a.logs(), a.timeline(), a.cluster(), a.token(), a.security(), a.config(), a.version())
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	return root
}

// wrapArgs makes a wrong number of arguments a typed error.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return errs.New(errs.CodeInvalid, "%s: %v; see %s --help", c.CommandPath(), err, c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// failed prints the error and returns the exit code.
func (a *app) failed(err error) int {
	if strings.HasPrefix(err.Error(), "unknown command") {
		err = errs.New(errs.CodeInvalid, "%v; see mobula --help", err)
	}
	code := exitCode(a.ctx, err)
	if a.json {
		text, jerr := json.Marshal(map[string]any{"error": err.Error(), "exit": code})
		if jerr == nil {
			fmt.Fprintln(a.errOut, string(text))
			return code
		}
	}
	fmt.Fprintln(a.errOut, "mobula:", err)
	return code
}

func exitCode(ctx context.Context, err error) int {
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, errs.ErrNodeRunning):
		return exitRunning
	case errors.Is(err, errs.ErrNoNode):
		return exitNoNode
	case errors.Is(err, errs.ErrNotFound):
		return exitNotFound
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	case errors.Is(err, errs.ErrInvalid):
		return exitUsage
	}
	return exitFailed
}

// print prints a value as JSON, or with text.
func (a *app) print(v any, text func(io.Writer)) error {
	if a.json {
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	if s, ok := screenOf(a.out); ok {
		text(s)
	} else {
		text(a.out)
	}
	return nil
}

// clockNow is the time by the node's clock, which the times in its answers use. A node must have been asked
// before.
func (a *app) clockNow() int64 {
	if a.now != nil {
		return a.now()
	}
	return a.clock.Now()
}

func (a *app) getenv(name string) string {
	for _, e := range a.environ {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}
