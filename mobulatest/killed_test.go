package mobulatest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobula"
	"mobula/internal/testkit"
)

// killedEnv has the test run as the process that is to be killed.
const killedEnv = "MOBULA_TEST_KILLED"

// What a test leaves that is killed, the directories of its nodes and their shared memory, goes with the next start of any node.
func TestWhatAKilledTestLeavesIsSwept(t *testing.T) {
	if os.Getenv(killedEnv) != "" {
		c := Cluster(t, 2)
		ctx := c.Connect(1).Context(t.Context())
		if _, err := mobula.Put(ctx, make([]float64, 1<<17)); err != nil {
			t.Fatal(err)
		}
		fmt.Println("up", c.dir)
		<-t.Context().Done() // it is killed
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestWhatAKilledTestLeavesIsSwept$")
	cmd.Env = append(os.Environ(), killedEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dir, up := strings.CutPrefix(strings.TrimSpace(line), "up ")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its error is the kill
	if !up {
		t.Fatalf("it says %q, %v", line, err)
	}
	var left []string // files of its nodes' shared memory
	for i := range 2 {
		id, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i), "identity"))
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob("/dev/shm/mobula-*-" + strings.TrimSpace(string(id)) + "*")
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, files...)
	}
	if len(left) == 0 {
		t.Fatal("it has left nothing in shared memory")
	}
	exists := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	testkit.Eventually(t, "a node sweeps what the killed ones have left", func() bool { // its workers may take a moment to end
		c, err := mobula.Start(t.Context(), mobula.WithStore(storeBytes))
		if err == nil {
			err = c.Close(context.WithoutCancel(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(append(left, dir), exists)
	})
}
