package guard

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// A service that a task starts as the guide says outlives the task's worker.
func TestWhatLeavesGroupAndMarkLivesOn(t *testing.T) {
	g := start(t)
	cmd := exec.Command("sh", "-c", "env -u "+Variable+" setsid sh -c 'echo $$; exec sleep 1000 >/dev/null' & wait")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), g.Environ("1")}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	service, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	defer killAll([]int{service})
	end(t, g) // kills the worker, by its mark
	_ = cmd.Wait()
	alive(t, "the service", service)
}
