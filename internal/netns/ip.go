package netns

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// ip carries out commands in a namespace, or outside of any, and stops at the first that fails.
func ip(ctx context.Context, namespace string, commands ...string) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-n", namespace}, args...)
	}
	cmd := exec.CommandContext(ctx, "ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("netns: ip %s: %s: %w: %s", strings.Join(args, " "), strings.Join(commands, "; "), err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
