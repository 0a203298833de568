package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"mobula/internal/config"
	"mobula/internal/errs"
	"mobula/internal/node"
	"mobula/internal/safefs"
)

// detach starts this command again, in a session of its own, and returns when the node is up.
func (a *app) detach(cfg *config.Config, f startFlags) error {
	// Check here, so that the reason is on the terminal and not in a log.
	if err := node.CheckDir(cfg.Dir); err != nil {
		return err
	}
	if cfg.Log.File == "" {
		cfg.Log.File = filepath.Join(cfg.Dir, "logs", "node.log")
	}
	if err := safefs.MakeRoot(filepath.Dir(cfg.Log.File)); err != nil {
		return errs.New(errs.CodeInvalid, "log.file %q: %v", cfg.Log.File, err)
	}
	args := []string{"start", "--json"}
	for _, v := range cfg.Describe() { // the same settings, from all sources
		if v.Value != "" {
			args = append(args, "--"+v.Flag+"="+v.Value)
		}
	}
	if f.moved {
		args = append(args, "--moved")
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = withoutSettings(a.environ)
	if f.token != "" {
		cmd.Env = append(cmd.Env, "MOBULA_TOKEN="+f.token) // the last one counts
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	crash, err := safefs.OpenFile(cfg.Log.File+".stderr", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600) // for output that does not go to the log: the stacks of a fatal error
	if err != nil {
		return errs.New(errs.CodeInvalid, "log.file %q: %v", cfg.Log.File, err)
	}
	defer func() { _ = crash.Close() }() // the child has its own
	cmd.Stderr = crash
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return errs.New(errs.CodeRuntimeSetup, "the node's process could not be started: %v", err)
	}
	ctx, cancel := context.WithTimeout(a.ctx, a.timeout)
	defer cancel()
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n') // empty if the process has ended
		line <- text
	}()
	select {
	case text := <-line:
		var s started
		if json.Unmarshal([]byte(text), &s) == nil && s.Address != "" {
			return errors.Join(a.print(s, s.text), cmd.Process.Release())
		}
		return a.startFailed(cmd, crash)
	case <-ctx.Done():
		_ = cmd.Process.Kill() // Wait reaps it
		_ = cmd.Wait()
		return errs.New(errs.CodeDeadline, "the node was not up in %v; see %s", a.timeout, cfg.Log.File)
	}
}

// startFailed reports why the node did not start, with its own message and exit code.
func (a *app) startFailed(cmd *exec.Cmd, crash *os.File) error {
	werr := cmd.Wait()
	text, err := safefs.ReadFile(crash.Name())
	if err != nil {
		return errors.Join(werr, err)
	}
	failed := &notStarted{said: told(string(text)), as: errs.ErrRuntimeSetup}
	if failed.said == "" {
		failed.said = werr.Error()
	}
	if as, ok := exitErrors[cmd.ProcessState.ExitCode()]; ok {
		failed.as = as
	}
	return failed
}

// notStarted is why a node in the background did not start, in its own words.
type notStarted struct {
	said string
	as   error // of its exit code
}

func (e *notStarted) Error() string { return "the node did not start: " + e.said }
func (e *notStarted) Unwrap() error { return e.as }

// exitErrors are the errors that exitCode gives codes of their own.
var exitErrors = map[int]error{
	exitUsage: errs.ErrInvalid, exitNoNode: errs.ErrNoNode, exitNotFound: errs.ErrNotFound, exitTimeout: context.DeadlineExceeded, exitRunning: errs.ErrNodeRunning,
}

// told is the error that a command with --json has written last, or all that it wrote where that is no such error.
func told(text string) string {
	text = strings.TrimSpace(text)
	var msg struct {
		Error string `json:"error"`
	}
	if i := strings.LastIndexByte(text, '\n'); json.Unmarshal([]byte(text[i+1:]), &msg) == nil && msg.Error != "" {
		return msg.Error
	}
	return text
}

// withoutSettings is the environment without variables for settings, which the flags have already.
func withoutSettings(environ []string) []string {
	drop := map[string]bool{"MOBULA_CONFIG": true}
	for _, s := range config.Settings() {
		drop[s.Env] = true
	}
	var out []string
	for _, e := range environ {
		if name, _, _ := strings.Cut(e, "="); !drop[name] {
			out = append(out, e)
		}
	}
	// The user's own file, if there is one, was read already.
	return append(out, "MOBULA_CONFIG=/dev/null")
}
