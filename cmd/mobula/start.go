package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"mobula/internal/config"
	"mobula/internal/errs"
	"mobula/internal/node"
	"mobula/internal/pidfd"
	"mobula/internal/state"
	"mobula/internal/trust"
)

// startFlags are the flags that are not settings.
type startFlags struct {
	detach bool
	bound  bool // bound to the process that started it
	output bool // print the workers' output
	moved  bool // the directory was copied, and its original is gone
	config string
	token  string // to join with; "-": on standard input
}

// started is the output of start.
type started struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	PID     int    `json:"pid"`
	Cluster string `json:"cluster,omitempty"` // where other nodes reach it
	Role    string `json:"role,omitempty"`    // in its cluster
	Metrics string `json:"metrics,omitempty"`
	Token   string `json:"metrics_token,omitempty"` // the file of the token that metrics are served for
	Log     string `json:"log,omitempty"`
}

func (s started) text(w io.Writer) {
	fmt.Fprintf(w, "node %s is up at %s (process %d)\n", s.Node, s.Address, s.PID)
	switch {
	case s.Role == string(trust.ControlPlane):
		fmt.Fprintf(w, "other nodes reach it at %s; mobula token create lets one join\n", s.Cluster)
	case s.Cluster != "":
		fmt.Fprintf(w, "other nodes reach it at %s; its role in the cluster is %s\n", s.Cluster, s.Role)
	}
	if s.Metrics != "" {
		fmt.Fprintf(w, "metrics at %s, for the bearer token in %s\n", s.Metrics, s.Token)
	}
	if s.Log != "" {
		fmt.Fprintf(w, "log in %s\n", s.Log)
	}
}

func (a *app) start() *cobra.Command {
	var f startFlags
	c := &cobra.Command{
		Use: "start", Short: "Start a node", Args: cobra.NoArgs,
		Long: `Start starts a node and prints its address. It runs in the foreground until it is
interrupted or stopped; with --detach it runs in the background, and start returns when
it is up.

Every setting can be given as a flag, as a MOBULA_ environment variable, or in a YAML file,
in this order of precedence; mobula config lists them all.`,
		Example: `  mobula start
  mobula start --detach --store-size 2GiB --metrics-address 127.0.0.1:9464
  MOBULA_STORE_SPILL=/data1,/data2 mobula start
  mobula start --config node.yaml --log-format json
  mobula start --listen 10.0.0.1                                  # the first node of a cluster
  MOBULA_TOKEN=mbl1... mobula start --join 10.0.0.1               # another one; mobula token create prints the token`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := config.Load(config.Input{Flags: c.Flags(), File: f.config, Environ: a.environ})
			if err != nil {
				return err
			}
			if cfg.Dir == "" {
				cfg.Dir = filepath.Dir(node.DefaultAddress())
			}
			if f.token == "" {
				f.token = a.getenv("MOBULA_TOKEN")
			}
			if f.detach && f.bound {
				return errs.New(errs.CodeInvalid, "--detach and --until-stdin-closes exclude each other")
			}
			if f.detach && f.output {
				return errs.New(errs.CodeInvalid, "--detach and --worker-output exclude each other: mobula logs shows what workers write")
			}
			if f.detach {
				return a.detach(cfg, f)
			}
			var left <-chan struct{}
			if f.bound {
				left = parentLeft(os.Stdin)
			}
			return a.serve(cfg, left, f)
		},
	}
	c.Flags().BoolVarP(&f.detach, "detach", "d", false, "run in the background")
	c.Flags().BoolVar(&f.bound, "until-stdin-closes", false, "run until standard input ends or the process that started it is gone: for a program that has a node of its own")
	c.Flags().BoolVar(&f.output, "worker-output", false, "print what workers write, each line with its worker before it; lines that are not read in time are left out, and are in the logs as all of them")
	c.Flags().BoolVar(&f.moved, "moved", false, "take a directory that was copied here for the only one, where the node that it was copied from is gone for good")
	c.Flags().StringVar(&f.token, "token", "", "token to join with, as mobula token create has printed it; better in MOBULA_TOKEN, since others see a command's flags")
	c.Flags().StringVar(&f.config, "config", "", "configuration file (default: MOBULA_CONFIG, else mobula/config.yaml in the user's configuration directory)")
	c.Flags().SortFlags = false
	config.AddFlags(c.Flags())
	return c
}

// parentLeft gives a channel that is closed when in ends, or when the process that started this one is gone: a child of that process may hold the other end of
// the pipe open.
func parentLeft(in io.Reader) <-chan struct{} {
	left := make(chan struct{})
	leave := sync.OnceFunc(func() { close(left) })
	go func() {
		_, _ = io.Copy(io.Discard, in) // until it ends, by whatever cause
		leave()
	}()
	if parent := os.Getppid(); parent > 0 { // else that process is in another namespace
		go func() {
			pidfd.Until(context.Background(), parent)
			leave()
		}()
	}
	return left
}

// serve runs the node until it should end, at the latest when left is closed.
func (a *app) serve(cfg *config.Config, left <-chan struct{}, f startFlags) (err error) {
	log, closeLog, err := node.NewLogger(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	ncfg := node.ConfigFrom(cfg, log)
	if ncfg.Wires == nil && node.IsOfCluster(cfg.Dir) {
		ncfg.Wires = node.WiresFrom(cfg)
	}
	if ncfg.Wires != nil {
		ncfg.Wires.Token = f.token
	}
	ncfg.Keep, ncfg.Bound, ncfg.Processes, ncfg.Moved = true, left != nil, true, f.moved
	defer allowGarbage(ncfg.StoreBytes)()
	var said *relay
	if f.output {
		said = newRelay()
		ncfg.WorkerOutput = said
	}
	n, err := node.Start(a.ctx, ncfg)
	if err != nil {
		return err
	}
	stop, up := n.StopRequested(), false
	if err = n.StartTelemetry(node.TelemetryFrom(cfg)); err == nil {
		s := started{Node: n.Name(), Address: n.Address(), PID: os.Getpid(), Cluster: n.ClusterAddress(), Role: n.Role(), Metrics: n.MetricsURL(), Log: cfg.Log.File}
		if s.Metrics != "" {
			s.Token = n.MetricsToken()
		}
		if err = a.print(s, s.text); err == nil {
			if said != nil {
				signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) // a write to a closed pipe then fails, and does not end the node
				go said.run(a.out)
				defer said.close()
			}
			up = true
			log.Info("node is up", "node", s.Node, "address", s.Address, "pid", s.PID)
			select {
			case <-stop:
				err = n.Failed()
			case <-left:
				log.Info("the process that started the node is gone")
			case <-a.ctx.Done():
				log.Info("node was interrupted")
			}
		}
	}
	// Whatever the reason, the node ends in order, unless a second signal comes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), cfg.CloseTimeout+5*time.Second)
	defer cancel()
	if cerr := n.Close(ctx); cerr != nil {
		log.Error("the node did not stop in order", "err", cerr)
		return errors.Join(err, cerr)
	}
	if up {
		log.Info("node has stopped")
	}
	return err
}

func (a *app) stop() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "stop", Short: "Stop a node", Args: cobra.NoArgs,
		Long: `Stop asks the node to end: workers finish or are ended, jobs are told, objects of a kept
node stay for its next start. It returns when the process is gone. With --force the process
is killed when that takes longer than --timeout.`,
		Example: `  mobula stop
  mobula stop --address /run/user/1000/mobula --timeout 10s --force`,
		RunE: func(*cobra.Command, []string) error {
			s, err := request[state.Stopping](a, state.MethodStop, state.StopRequest{Reason: "mobula stop"})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(a.ctx, a.timeout)
			defer cancel()
			if err := awaitEnd(ctx, s.PID, force); err != nil {
				return fmt.Errorf("node %s: %w", s.Node, err)
			}
			return a.print(s, func(w io.Writer) { fmt.Fprintf(w, "node %s (process %d) has stopped\n", s.Node, s.PID) })
		},
	}
	c.Flags().BoolVar(&force, "force", false, "kill the process when it does not end in time")
	return c
}

// awaitEnd waits until a process is gone.
func awaitEnd(ctx context.Context, pid int, force bool) error {
	p, err := pidfd.Open(pid)
	if errors.Is(err, pidfd.ErrGone) {
		return nil
	} else if err != nil {
		return err
	}
	defer p.Close()
	if p.Await(ctx, endless) {
		return nil
	}
	if force {
		if err := p.Kill(unix.SIGKILL); err != nil {
			return fmt.Errorf("process %d cannot be killed: %w", pid, err)
		}
		if p.Await(context.WithoutCancel(ctx), 10*time.Second) {
			return nil
		}
	}
	return errs.New(errs.CodeDeadline, "process %d was asked to end and still runs; wait longer with --timeout, or use --force", pid)
}

// endless is longer than any context lives.
const endless = 1000 * time.Hour
