package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"mobula/internal/state"
)

func (a *app) memory() *cobra.Command {
	q, v := new(query), new(view)
	c := &cobra.Command{
		Use: "memory", Short: "Show who holds what memory", Args: cobra.NoArgs,
		Long: `Memory shows how full the object store is and lists references by size, the largest first:
what they came from and where, who holds them, and where their bytes lie.`,
		Example: `  mobula memory
  mobula memory --filter type=put --limit 20
  mobula memory --json | jq .objects.rows[0]`,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := build[state.Object](q)
			if err != nil {
				return err
			}
			return show(a, v, c, func() (state.Memory, error) { return request[state.Memory](a, state.MethodMemory, in) }, memoryText)
		},
	}
	q.flags(c)
	v.flag(c)
	return c
}

func memoryText(w io.Writer, m *state.Memory) {
	st := &m.Store
	fmt.Fprintf(w, "store: %s of %s held, %s pinned, %s in spill storage; %s in messages\n", size(st.Held), size(st.Limit), size(st.Pinned), size(st.Spilled), size(m.Inline))
	if st.Waiting > 0 {
		fmt.Fprintf(w, "%d creates wait for room\n", st.Waiting)
	}
	if len(m.Objects.Rows) > 0 {
		objectTable(w, m.Objects.Rows)
	}
	footer(w, len(m.Objects.Rows), m.Objects.Total, m.Objects.Next)
}
