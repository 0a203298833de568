package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mobula/internal/errs"
	"mobula/internal/state"
	"mobula/internal/trust"
)

func (a *app) token() *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Make, list and revoke the tokens with which nodes join the cluster",
		Long: `A token lets a machine become a node of the cluster. It is for one role, lives for a day unless
told, and is shown once. Ask a control-plane server: the node that founded the cluster is one.`,
		Example: "  mobula token create\n  mobula token create --role control-plane --once --lifetime 10m\n  mobula token list\n  mobula token revoke 7kq2...",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.tokenCreate(), a.tokenList(), a.tokenRevoke())
	return c
}

func (a *app) tokenCreate() *cobra.Command {
	in := state.TokenRequest{Role: string(trust.Data)}
	c := &cobra.Command{
		Use: "create", Short: "Make a token, and print how to join with it", Args: cobra.NoArgs,
		Example: "  mobula token create\n  mobula token create --role driver --lifetime 1h --note laptops\n  mobula token create --json | jq -r .token",
		RunE: func(*cobra.Command, []string) error {
			if in.Lifetime <= 0 { // 0 would be a day for the node
				return errs.New(errs.CodeInvalid, "--lifetime %v: want more than 0", in.Lifetime)
			}
			made, err := request[state.MadeToken](a, state.MethodTokenMake, in)
			if err != nil {
				return err
			}
			return a.print(made, func(w io.Writer) { tokenText(w, made) })
		},
	}
	c.Flags().StringVar(&in.Role, "role", in.Role, "what the node becomes: data (it runs work), control-plane (it carries the tables, too), or driver (a program's own node)")
	c.Flags().DurationVar(&in.Lifetime, "lifetime", 24*time.Hour, "how long the token can be used")
	c.Flags().BoolVar(&in.Once, "once", false, "for one node")
	c.Flags().StringVar(&in.Note, "note", "", "whom or what it is for, as mobula token list shows it")
	return c
}

// tokenText shows a token that was made, and how to join with it.
func tokenText(w io.Writer, made state.MadeToken) {
	join := strings.Join(made.Join, ",")
	fmt.Fprintf(w, "%s\n\n", made.Token)
	if made.Role == string(trust.Driver) {
		fmt.Fprintf(w, "A program on another machine joins until %s, with\n\n  MOBULA_TOKEN=%s\n\nin its environment and\n\n"+
			"  mobula.init(%q)               in Python\n  mobula.Connect(ctx, %[3]q)    in Go\n", trust.Stamp(made.Expires), made.Token, made.Join[0])
		return
	}
	role := ""
	if made.Role != string(trust.Data) {
		role = " --role " + made.Role
	}
	fmt.Fprintf(w, "A node with the role %s joins until %s, on another machine, with\n\n  MOBULA_TOKEN=%s mobula start --join %s%s\n",
		made.Role, trust.Stamp(made.Expires), made.Token, join, role)
}

func (a *app) tokenList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens, without their secrets", Args: cobra.NoArgs, Example: "  mobula token list",
		RunE: func(*cobra.Command, []string) error {
			all, err := request[state.Tokens](a, state.MethodTokenList, struct{}{})
			if err != nil {
				return err
			}
			return a.print(all, func(w io.Writer) { tokenTable(w, all.Rows) })
		},
	}
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a token; nodes that joined with it stay", Args: cobra.ExactArgs(1), Example: "  mobula token revoke 7kq2...",
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := request[state.Token](a, state.MethodTokenRevoke, state.TokenID{ID: args[0]})
			if err != nil {
				return err
			}
			return a.print(t, func(w io.Writer) { tokenTable(w, []state.Token{t}) })
		},
	}
}

func tokenTable(w io.Writer, all []state.Token) {
	var data [][]string
	for _, r := range all {
		uses := strconv.Itoa(r.Uses)
		if r.Once {
			uses += " of 1"
		}
		data = append(data, []string{r.ID, r.Role, r.State, uses, trust.Stamp(r.Expires), r.Note})
	}
	rows(w, columns{head: []string{"ID", "ROLE", "STATE", "USES", "EXPIRES", "NOTE"}}, data)
}
