package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mobula/internal/errs"
	"mobula/internal/state"
	"mobula/internal/trust"
)

func (a *app) security() *cobra.Command {
	c := &cobra.Command{
		Use: "security", Short: "See how the cluster is protected, revoke a node, replace keys",
		Long: `Security check shows what listens on each node of the cluster and how it is protected. The other
commands change whom the cluster trusts; ask a control-plane server for them: the node that founded
the cluster is one. All nodes hear of the change within a second or two.`,
		Example: "  mobula security check\n  mobula security revoke n3 --why 'lost machine'\n  mobula security rotate gossip",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.securityCheck(), a.securityRevoke(), a.securityRotate())
	return c
}

func (a *app) securityCheck() *cobra.Command {
	var in state.SecurityRequest
	c := &cobra.Command{
		Use: "check", Short: "List what listens and how it is protected, with certificates, keys and tokens, and what is weak", Args: cobra.NoArgs,
		Long: `Check lists each socket that a node listens on, with what it is for and how it is protected; the
certificates with their ends; the age of keys; the tokens that can be used; and what is weak, with
what to do about it. What listens is compared with what the node's process has open.

The exit code is 1 if something can be reached from other machines without protection, or if a node
did not answer.`,
		Example: "  mobula security check\n  mobula security check --node n2\n  mobula security check --json | jq '.nodes[].weak'",
		RunE: func(*cobra.Command, []string) error {
			r, err := request[state.SecurityReport](a, state.MethodSecurityCheck, in)
			if err != nil {
				return err
			}
			if err := a.print(r, func(w io.Writer) { securityText(w, &r) }); err != nil {
				return err
			}
			a.warn(a.errOut, r.Unreachable)
			switch n := r.Exposed(); {
			case n > 0:
				return errs.New(errs.CodePermission, "%d weaknesses are open to other machines", n)
			case len(r.Unreachable) > 0:
				return errs.New(errs.CodeDisconnected, "%d nodes were not checked", len(r.Unreachable))
			}
			return nil
		},
	}
	nodeFlag(c, &in.Node)
	return c
}

func securityText(w io.Writer, r *state.SecurityReport) {
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if i > 0 {
			fmt.Fprintln(w)
		}
		if n.Cluster == "" {
			fmt.Fprintf(w, "node %s, of no cluster\n\n", oneLine(n.Node))
		} else {
			fmt.Fprintf(w, "node %s, home %s, role %s, of cluster %s; follows trust bundle %d, which revokes %d\n\n", oneLine(n.Node), n.Home, n.Role, n.Cluster, n.Bundle, n.Revoked)
		}
		var data [][]string
		for _, l := range n.Listeners {
			data = append(data, []string{l.Network + " " + l.Address, reach(l), l.For, l.Protection})
		}
		rows(w, columns{head: []string{"LISTENS", "REACHED", "FOR", "PROTECTED BY"}, less: []string{"FOR"}}, data)
		proofs(w, n)
		for _, x := range n.Weak {
			fmt.Fprintf(w, "%s: %s\n  %s\n", weight(x), oneLine(x.What), oneLine(x.Mend))
		}
	}
}

// proofs shows certificates, keys and tokens.
func proofs(w io.Writer, n *state.NodeSecurity) {
	var data [][]string
	for _, c := range n.Certificates {
		data = append(data, []string{"certificate", c.For, trust.Stamp(c.From), trust.Stamp(c.Until)})
	}
	for _, k := range n.Keys {
		data = append(data, []string{"key", strings.TrimSuffix(k.For+"; "+k.State, "; "), trust.Stamp(k.Since), ""})
	}
	for _, role := range slices.Sorted(maps.Keys(n.Tokens)) {
		data = append(data, []string{"tokens", strconv.Itoa(n.Tokens[role]) + " for the role " + role, "", ""})
	}
	if len(data) > 0 {
		fmt.Fprintln(w)
		rows(w, columns{head: []string{"PROOF", "OF", "FROM", "UNTIL"}}, data)
	}
	if len(n.Weak) > 0 {
		fmt.Fprintln(w)
	}
}

// reach says who can reach a socket.
func reach(l state.Listening) string {
	switch {
	case l.Away:
		return "from other machines"
	case l.Network == "unix":
		return "by files"
	}
	return "from this machine"
}

func weight(x state.Weakness) string {
	if x.Exposed {
		return "EXPOSED"
	}
	return "weak"
}

func (a *app) securityRevoke() *cobra.Command {
	var in state.RevokeRequest
	c := &cobra.Command{
		Use: "revoke NODE", Short: "Shut a node out of the cluster, by its name or home", Args: cobra.ExactArgs(1),
		Long: `Revoke ends all certificates that a node has, and its life. All others cut their connections with it
and let it in no more; what ran there runs elsewhere; the gossip gets a key that the node does not
know. The node can join again with a token: mobula token create makes one.`,
		Example: "  mobula security revoke n3 --why 'lost machine'\n  mobula security revoke 3 --json",
		RunE: func(_ *cobra.Command, args []string) error {
			in.Node = args[0]
			r, err := request[state.RevokedNode](a, state.MethodRevoke, in)
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) {
				fmt.Fprintf(w, "node %s, home %s, is shut out: its certificates up to life %d count no more (trust bundle %d)\n", oneLine(r.Node), r.Home, r.Epoch, r.Bundle)
				if r.Left != "" {
					fmt.Fprintln(w, r.Left)
				}
			})
		},
	}
	c.Flags().StringVar(&in.Why, "why", "", "the reason, as the node and the logs are told it")
	return c
}

func (a *app) securityRotate() *cobra.Command {
	c := &cobra.Command{
		Use: "rotate", Short: "Replace a key of the cluster while it runs", Args: cobra.NoArgs,
		Example: "  mobula security rotate gossip\n  mobula security rotate root",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.rotateGossip(), a.rotateRoot())
	return c
}

func (a *app) rotateGossip() *cobra.Command {
	return &cobra.Command{
		Use: "gossip", Short: "Replace the key of the membership's gossip", Args: cobra.NoArgs,
		Long: `The new key is given to all nodes; when all have it they encrypt with it; when all do, the old key
goes. That takes some seconds, and goes on by itself. A node that is off gets the key when it comes back.`,
		Example: "  mobula security rotate gossip\n  mobula security rotate gossip --json",
		RunE:    func(*cobra.Command, []string) error { return a.rotate(state.RotateRequest{What: state.RotateGossip}) },
	}
}

func (a *app) rotateRoot() *cobra.Command {
	in := state.RotateRequest{What: state.RotateRoot}
	c := &cobra.Command{
		Use: "root", Short: "Replace the root of the cluster's authority", Args: cobra.NoArgs,
		Long: `The new root signs from now on, and all nodes get certificates of it at once. Both roots are trusted
for the overlap: a node that is off for longer has to join again with a token. --finish ends the
overlap, once all nodes that run have certificates of the new root.`,
		Example: "  mobula security rotate root\n  mobula security rotate root --overlap 24h\n  mobula security rotate root --finish",
		RunE:    func(*cobra.Command, []string) error { return a.rotate(in) },
	}
	c.Flags().DurationVar(&in.Overlap, "overlap", 40*24*time.Hour, "how long the root before is trusted too")
	c.Flags().BoolVar(&in.Finish, "finish", false, "trust the root before no more")
	return c
}

func (a *app) rotate(in state.RotateRequest) error {
	r, err := request[state.Rotating](a, state.MethodRotate, in)
	if err != nil {
		return err
	}
	return a.print(r, func(w io.Writer) {
		fmt.Fprintf(w, "trust bundle %d tells the nodes", r.Bundle)
		if len(r.Behind) > 0 {
			fmt.Fprintf(w, "; not yet with it: %s", strings.Join(r.Behind, ", "))
		}
		fmt.Fprintln(w, "; mobula security check shows how far they are")
	})
}
