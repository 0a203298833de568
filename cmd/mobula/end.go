package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"mobula/internal/state"
)

func (a *app) cancel() *cobra.Command {
	var r state.CancelRequest
	c := &cobra.Command{
		Use: "cancel TASK|OBJECT", Short: "Cancel a task", Args: cobra.ExactArgs(1),
		Long: `Cancel cancels a task, or the one that makes an object, as its program can: what waits never
starts, and what runs is told, and fails with ErrCancelled when it ends. With --force what runs is
given up at once, and its worker process is ended. A task is 40 hexadecimal digits, an object
TASK:INDEX, as lists show them. A task that has ended already is left as it is.`,
		Example: `  mobula cancel 000000000000000107e4d77f385327457f149543
  mobula cancel 000000000000000107e4d77f385327457f149543 --force --recursive
  mobula list tasks --filter state=RUNNING --filter func=app/slow --json | jq -r .rows[].id | xargs -n1 mobula cancel`,
		RunE: func(_ *cobra.Command, args []string) error {
			r.ID = args[0]
			done, err := request[state.Cancelling](a, state.MethodCancel, r)
			if err != nil {
				return err
			}
			return a.print(done, func(w io.Writer) { cancelText(w, &done, r.Recursive) })
		},
	}
	c.Flags().BoolVar(&r.Force, "force", false, "do not wait for the task to notice")
	c.Flags().BoolVar(&r.Recursive, "recursive", false, "cancel also what the task has submitted")
	return c
}

func cancelText(w io.Writer, d *state.Cancelling, recursive bool) {
	switch {
	case d.Ended && recursive:
		fmt.Fprintf(w, "task %s (%s) had ended: it is %s; what it submitted is cancelled\n", d.Task, oneLine(d.Name), d.State)
	case d.Ended:
		fmt.Fprintf(w, "task %s (%s) had ended: it is %s\n", d.Task, oneLine(d.Name), d.State)
	default:
		fmt.Fprintf(w, "task %s (%s) is cancelled: it was %s and is %s\n", d.Task, oneLine(d.Name), d.Was, d.State)
	}
}

func (a *app) kill() *cobra.Command {
	var r state.KillRequest
	var forGood bool
	c := &cobra.Command{
		Use: "kill ACTOR|NAME", Short: "End an actor at once", Args: cobra.ExactArgs(1),
		Long: `Kill ends an actor at once, as its program can: its calls fail with ErrActorDied and its close
hook is not called. It does not come back, unless --no-restart=false asks for what a crash does: a
restart, within its MaxRestarts. The actor is named by its id, 40 hexadecimal digits, or by its
name, as mobula list actors shows them.`,
		Example: `  mobula kill 000000000000000107e4d77f385327457f149543
  mobula kill hits --namespace prod
  mobula kill hits --no-restart=false`,
		RunE: func(_ *cobra.Command, args []string) error {
			r.Actor, r.Restart = args[0], !forGood
			done, err := request[state.Killed](a, state.MethodKill, r)
			if err != nil {
				return err
			}
			return a.print(done, func(w io.Writer) {
				name := ""
				if done.Name != "" {
					name = fmt.Sprintf(" %q", done.Name)
				}
				fmt.Fprintf(w, "actor %s (%s%s) was %s and is %s\n", done.Actor, oneLine(done.Type), name, done.Was, done.State)
			})
		},
	}
	c.Flags().StringVar(&r.Namespace, "namespace", "", "of the name (default: the node's)")
	c.Flags().BoolVar(&forGood, "no-restart", true, "it does not come back; with =false it does as after a crash")
	return c
}
