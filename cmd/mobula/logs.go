package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mobula/internal/errs"
	"mobula/internal/state"
)

func (a *app) logs() *cobra.Command {
	var r state.LogsRequest
	var follow bool
	c := &cobra.Command{
		Use: "logs [TASK|WORKER]", Short: "Show what worker processes wrote, also those that are gone", Args: cobra.MaximumNArgs(1),
		Long: `Logs shows the end of what a worker process wrote to its standard output and error: of a
worker as mobula list workers shows it, or of its log, worker/NUMBER. Of a task it shows the
lines that name it, whichever workers ran it: what slog logs with the task's context does.
Without an argument it lists the logs there are. They outlive their worker; the oldest are
removed beyond 1 GiB. In a cluster the workers of all nodes are meant; a worker's number names its
node.`,
		Example: `  mobula logs
  mobula logs worker/3 --bytes 1048576
  mobula logs 000000000000000107e4d77f385327457f149543
  mobula logs 2-5 --follow                             # of a worker on another node, as it comes`,
		RunE: func(_ *cobra.Command, args []string) error {
			if r.Bytes <= 0 || r.Bytes > state.MaxLogBytes {
				return errs.New(errs.CodeInvalid, "--bytes %d: want 1 to %d", r.Bytes, state.MaxLogBytes)
			}
			if len(args) > 0 {
				r.ID = args[0]
			}
			if follow {
				if r.ID == "" {
					return errs.New(errs.CodeInvalid, "--follow needs a task or a worker: mobula logs lists the logs there are")
				}
				return a.followLogs(r)
			}
			l, err := request[state.Logs](a, state.MethodLogs, r)
			if err != nil {
				return err
			}
			err = a.print(l, func(w io.Writer) {
				if streams := there(l.Streams); r.ID == "" {
					a.logTable(w, streams)
				} else {
					logText(w, streams)
				}
			})
			a.warn(a.errOut, notThere(l.Streams))
			return err
		},
	}
	nodeFlag(c, &r.Node)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is written, until interrupted")
	c.Flags().Int64VarP(&r.Bytes, "bytes", "b", state.DefaultLogBytes, "of each output, at most; the end is shown")
	return c
}

func (a *app) logTable(w io.Writer, streams []state.LogStream) {
	var data [][]string
	var nodes []string
	for _, s := range streams {
		nodes = append(nodes, s.Node)
		data = append(data, []string{s.Worker, s.Stream, size(uint64(s.Size)), a.since(s.Changed), s.Path})
	}
	rows(w, columns{
		nodes: nodes,
		head:  []string{"WORKER", "STREAM", "SIZE", "CHANGED", "FILE"},
		right: []string{"SIZE", "CHANGED"},
		less:  []string{"CHANGED", "SIZE"},
	}, data)
}

// there are the logs of nodes that have answered.
func there(streams []state.LogStream) (out []state.LogStream) {
	for _, s := range streams {
		if s.Error == "" {
			out = append(out, s)
		}
	}
	return out
}

// notThere are the nodes that have not.
func notThere(streams []state.LogStream) (out []state.Unreachable) {
	for _, s := range streams {
		if s.Error != "" {
			out = append(out, state.Unreachable{Node: s.Node, Why: s.Error})
		}
	}
	return out
}

// logText prints the output of workers.
func logText(w io.Writer, streams []state.LogStream) {
	for _, s := range streams {
		logHead(w, s)
		if s.Omitted > 0 {
			fmt.Fprintf(w, "== %s before this are left out\n", size(uint64(s.Omitted)))
		}
		text := still(s.Text)
		fmt.Fprint(w, text)
		if !strings.HasSuffix(text, "\n") {
			fmt.Fprintln(w)
		}
	}
}

// logHead says whose output follows.
func logHead(w io.Writer, s state.LogStream) {
	if s.Node != "" {
		s.Path += " on node " + s.Node
	}
	fmt.Fprintf(w, "== %s %s %s\n", s.Worker, s.Stream, s.Path)
}

// still is a text unchanged, but for what would move a terminal's cursor.
func still(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}
