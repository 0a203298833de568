package checkout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Bring brings a commit of the repository root into dir, where an earlier one may be: ignored files stay. It returns the commit's short name.
func Bring(ctx context.Context, root, dir, commit string) (string, error) {
	whole, err := git(ctx, root, "rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return "", err
		}
		if _, err := git(ctx, root, "clone", "-q", "--no-checkout", root, dir); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{
		{"fetch", "-q", root, "+" + whole + ":refs/heads/brought"},
		{"checkout", "-q", "--force", "--detach", "refs/heads/brought"},
		{"clean", "-qfd"},
	} {
		if _, err := git(ctx, dir, args...); err != nil {
			return "", err
		}
	}
	return git(ctx, root, "rev-parse", "--short", whole)
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	b, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, b)
	}
	return strings.TrimSpace(string(b)), nil
}
