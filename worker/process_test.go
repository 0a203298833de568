package worker

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/testkit"
	"mobula/raylet/pool/proc"
	"mobula/wire"
	"mobula/wire/conn"
)

func init() {
	registry.Register(&registry.Function{Name: "worker_test/length", Signature: 4, Invoke: func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
		return out(string(c.Inputs[0].Value.Data)), nil, nil
	}})
}

func TestEnvironmentIsTheLaunchers(t *testing.T) {
	for mine, theirs := range map[string]string{envSocket: proc.EnvSocket, envToken: proc.EnvToken, envID: proc.EnvID, envJob: proc.EnvJob, envKind: proc.EnvKind, envFunc: proc.EnvFunc} {
		if mine != theirs {
			t.Errorf("%s here, %s in the launcher", mine, theirs)
		}
	}
	vars := map[string]string{envSocket: "/s", envToken: "beef", envJob: "12", envKind: "tasks", envMemory: "1000"}
	get := func(k string) string { return vars[k] }
	e, is, err := FromEnv(get)
	if err != nil || !is || e.Socket != "/s" || hex.EncodeToString(e.Token) != "beef" || e.Job != 12 || e.Memory != 1000 {
		t.Fatalf("got %+v, %v, %v", e, is, err)
	}
	for k, bad := range map[string]string{envToken: "x", envJob: "-1", envMemory: "0"} {
		good := vars[k]
		vars[k] = bad
		if _, _, err := FromEnv(get); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s=%s: got %v", k, bad, err)
		}
		vars[k] = good
	}
	if _, is, err := FromEnv(func(string) string { return "" }); is || err != nil {
		t.Errorf("a plain process is taken for a worker: %v", err)
	}
}

// node is a socket that gives one worker one task and then acts.
func node(t *testing.T, then func(c *conn.Conn)) (socket string, hello chan *wire.Hello, done chan *wire.Done) {
	t.Helper()
	fd, err := unix.MemfdCreate("segment", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "segment")
	t.Cleanup(func() { _ = file.Close() })
	_, err = file.WriteAt([]byte("in the segment"), 0)
	if err := errors.Join(err, file.Truncate(4096)); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "w") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := conn.Listen(filepath.Join(dir, "s"), conn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	hello, done = make(chan *wire.Hello, 1), make(chan *wire.Done, 1)
	ref := ids.RootTask(3, 1).Return(0)
	task := wire.ExecTask{Attempt: 1, Spec: &wire.TaskSpec{ID: ids.Derive(ids.RootTask(3, 1), 2), Args: []wire.Arg{{Ref: ref}}, Opts: &wire.TaskOptions{Func: "worker_test/length", NumReturns: 1}},
		Args: []wire.ArgValue{{Result: wire.Result{Kind: wire.ResultStored, Size: 14}, Extent: wire.Extent{Size: 64}}}}
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(func(h *wire.Hello, _ conn.Peer) (*conn.Session, error) {
			hello <- h
			return &conn.Session{Welcome: &wire.Welcome{Client: 8, Job: 3, Root: ids.RootTask(3, 8), SegmentSize: 4096}, Segment: file, Run: func(c *conn.Conn, err error) {
				if err != nil {
					t.Error(err)
					return
				}
				if err := c.Send(&wire.Exec{Lease: 1, Tasks: []wire.ExecTask{task}}); err != nil {
					t.Error(err)
				}
				for {
					batch, err := c.Recv()
					if err != nil {
						return
					}
					for _, m := range batch {
						if d, ok := m.(*wire.Done); ok {
							done <- d
							then(c)
						}
					}
				}
			}}, nil
		})
	}()
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return l.Path(), hello, done
}

func TestMainWorksUntilTheNodeDrainsItOrIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*conn.Conn)
		want error
	}{
		"drain": {func(c *conn.Conn) { _ = c.Send(&wire.Drain{}) }, nil},
		"gone":  {func(c *conn.Conn) { _ = c.Close() }, errs.ErrDisconnected},
		"bye":   {func(c *conn.Conn) { _ = c.Send(&wire.Bye{Err: errs.New(errs.CodeShutdown, "stopping")}) }, errs.ErrShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(envToken, "00ff")
			socket, hello, done := node(t, c.then)
			ctx := testkit.Within(t)
			err := Main(ctx, Env{Socket: socket, Token: []byte{1}, Job: 3})
			if (c.want == nil) != (err == nil) || !errors.Is(err, c.want) && c.want != nil || err != nil && !errors.Is(err, errs.ErrDisconnected) || ctx.Err() != nil {
				t.Errorf("Main ended with %v", err)
			}
			h, d := <-hello, <-done
			if h.Role != wire.RoleWorker || h.Job != 3 || len(h.Token) != 1 || len(h.Functions) == 0 || h.PID != int32(os.Getpid()) {
				t.Errorf("hello: %+v", h)
			}
			if d.Err != nil || string(d.Results[0].Value.Data) != "in the segment" {
				t.Errorf("done: %+v", d)
			}
			if os.Getenv(envToken) != "" {
				t.Error("the token stays in the environment")
			}
		})
	}
}

func TestMainWithoutANode(t *testing.T) {
	if err := Main(t.Context(), Env{Socket: filepath.Join(t.TempDir(), "s")}); !errors.Is(err, errs.ErrNoNode) || !errors.Is(err, errs.ErrDisconnected) {
		t.Errorf("got %v", err)
	}
}
