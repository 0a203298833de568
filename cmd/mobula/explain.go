package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mobula/internal/state"
)

func (a *app) explain() *cobra.Command {
	v := new(view)
	c := &cobra.Command{
		Use: "explain TASK|OBJECT", Short: "Say why a task waits, or who holds an object", Args: cobra.ExactArgs(1),
		Long: `Explain says why a task is where it is: which argument it waits for and what makes that, which
resource is missing and how many are before it in the queue; or of an object who holds it,
where its bytes lie, and what makes it. A task is 40 hexadecimal digits, an object TASK:INDEX, as
lists show them. In a cluster it may be of any node's job; of a task that waits for a slot the
schedulers of all nodes say what they know.`,
		Example: `  mobula explain 000000000000000107e4d77f385327457f149543
  mobula explain 000000000000000107e4d77f385327457f149543:0 --watch`,
		RunE: func(c *cobra.Command, args []string) error {
			return show(a, v, c, func() (state.Explanation, error) {
				return request[state.Explanation](a, state.MethodExplain, state.ExplainRequest{ID: args[0]})
			}, func(w io.Writer, ex *state.Explanation) { explanationText(w, ex, 0) })
		},
	}
	v.flag(c)
	return c
}

// explanationText prints an explanation, and what it waits for below it.
func explanationText(w io.Writer, ex *state.Explanation, depth int) {
	pad := strings.Repeat("  ", depth)
	name := ""
	switch {
	case ex.Task != nil:
		name = " " + ex.Task.Name
		if ex.Task.Callsite != "" {
			name += ", called at " + ex.Task.Callsite
		}
	case ex.Object != nil && ex.Object.Func != "":
		name = fmt.Sprintf(" %s of %s", ex.Object.Type, ex.Object.Func)
	case ex.Object != nil:
		name = " " + ex.Object.Type
	}
	fmt.Fprintf(w, "%s%s %s%s is %s\n", pad, ex.Kind, ex.ID, name, ex.State)
	fmt.Fprintf(w, "%s  %s\n", pad, oneLine(ex.Summary))
	for _, d := range ex.Details {
		fmt.Fprintf(w, "%s  - %s\n", pad, oneLine(d))
	}
	if ex.Next != nil {
		explanationText(w, ex.Next, depth+1)
	}
}
