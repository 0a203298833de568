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
what they came from and where, who holds them, and where their bytes lie. In a cluster it shows
the store of each node, and the references of all jobs.`,
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
	nodeFlag(c, &q.node)
	v.flag(c)
	return c
}

func memoryText(w io.Writer, m *state.Memory) {
	for i := range m.Nodes {
		storeText(w, "store of "+m.Nodes[i].Node, &m.Nodes[i].Store, m.Nodes[i].Inline)
	}
	if len(m.Nodes) == 0 {
		storeText(w, "store", &m.Store, m.Inline)
	}
	if len(m.Objects.Rows) > 0 {
		objectTable(w, m.Objects.Rows)
	}
	footer(w, len(m.Objects.Rows), m.Objects.Total, m.Objects.Next)
}

func storeText(w io.Writer, what string, st *state.Store, inline uint64) {
	fmt.Fprintf(w, "%s: %s of %s held, %s pinned, %s in spill storage; %s in messages\n", what, size(st.Held), size(st.Limit), size(st.Pinned), size(st.Spilled), size(inline))
	if st.SpillGarbage > 0 {
		fmt.Fprintf(w, "%s in spill files of objects that are gone\n", size(st.SpillGarbage))
	}
	if st.Waiting > 0 {
		fmt.Fprintf(w, "%d creates wait for room\n", st.Waiting)
	}
}
