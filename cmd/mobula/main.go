package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"mobula/internal/errs"
	"mobula/internal/node"
	_ "mobula/internal/node/gossip/memberlist" // nodes gossip
	_ "mobula/objectstore/spill/s3"
	_ "mobula/telemetry/otlp"
)

func main() {
	if is, err := node.Worker(context.Background()); is { // workers run this program if their driver's is not known
		if err != nil {
			if !errors.Is(err, errs.ErrDisconnected) { // the node is gone, or going: its log says why
				fmt.Fprintln(os.Stderr, "mobula worker:", err)
			}
			os.Exit(exitFailed)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() { // a second signal ends the process at once
		<-ctx.Done()
		stop()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run runs one command and gives its exit code.
func run(ctx context.Context, args, environ []string, out, errOut io.Writer) int {
	a := &app{ctx: ctx, out: out, errOut: errOut, environ: environ}
	root := a.root()
	root.SetArgs(joinWatch(args))
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	return a.failed(err)
}
