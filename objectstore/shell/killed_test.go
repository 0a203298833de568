package shell

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/segment"
	"mobula/wire"
)

// killedEnv names the directory in which the node of this process is to work until it is killed.
const killedEnv = "OBJECTSTORE_TEST_KILLED"

func killedConfig() objectstore.Config { return testConfig(8 * mib) }

func killedMemory(dir string) segment.Config {
	return segment.Config{Path: filepath.Join("/dev/shm", "mobula-test-"+filepath.Base(filepath.Dir(dir))+filepath.Base(dir))}
}

// killedNode fills a store, leaves a view open and an extent unsealed, and waits for its end.
func killedNode() {
	dir := os.Getenv(killedEnv)
	t := &testing.T{}
	cfg := spillConfig(dir)
	cfg.Restarts = true
	r := newRig(t, killedConfig(), cfg, killedMemory(dir))
	u := r.join(7)
	for i := range 24 {
		u.put(put(i), pattern(i, mib/2))
	}
	p := objectstore.Pack{Job: 1}
	for i := range 100 {
		p.Values = append(p.Values, objectstore.PackValue{ID: root.Return(i), Value: wire.Value{Meta: []byte{byte(i)}, Data: pattern(i, 1000)}})
	}
	r.post(p)
	r.post(objectstore.Free{IDs: []ids.ObjectID{put(3), root.Return(5)}})
	if _, err := u.get(put(20)); err != nil {
		panic(err)
	}
	if m := u.create(put(50), mib, ids.TaskID{}); m.Err != nil {
		panic(m.Err)
	}
	s := r.stats()
	fmt.Println("ready", s.SpilledObjects, s.Objects)
	select {}
}

func TestAKilledNodesObjectsAreThereAgain(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), killedEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where the test fails before the second node is closed
		_ = removeAll(killedMemory(dir).Path)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("the first node said %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if strings.HasPrefix(line, "ready 0") {
		t.Fatal("the first node had spilled nothing")
	}

	cfg := spillConfig(dir)
	cfg.Restarts = true
	r := newRig(t, killedConfig(), cfg, killedMemory(dir))
	old, err := r.store.OldClients(context.Background())
	if err != nil || len(old) != 1 || old[0].Client != 7 || int(old[0].PID) != cmd.Process.Pid {
		t.Fatalf("clients of before: %+v, %v", old, err)
	}
	s := r.stats()
	if s.Granted != mib || s.Pinned == 0 || s.Pinned != s.Sealed {
		t.Errorf("before the old client is heard of nothing may go: %+v", s)
	}
	r.clientGone(7)
	if s := r.stats(); s.Granted != 0 || s.Pinned != 0 {
		t.Errorf("after the old client is gone: %+v", s)
	}
	u := r.join(8)
	for i := range 24 {
		b, err := getOrLost(r, u, put(i))
		if i == 3 {
			if err == nil {
				t.Error("a freed object is there again")
			}
			continue
		}
		if err != nil || !bytes.Equal(b, pattern(i, mib/2)) {
			t.Fatalf("object %d of %d bytes: %v", i, len(b), err)
		}
		u.unpin(put(i))
	}
	for i := range 100 {
		if i == 5 {
			continue // freed: with its block, it may be there again
		}
		b, err := getOrLost(r, u, root.Return(i))
		if err != nil || !bytes.Equal(b, pattern(i, 1000)) {
			t.Fatalf("packed value %d of %d bytes: %v", i, len(b), err)
		}
		u.unpin(root.Return(i))
	}
	r.mu.Lock()
	if len(r.invent) != 1 || len(r.invent[0].Objects) < 23+99 {
		t.Errorf("the owner was told of %d inventories", len(r.invent))
	}
	r.mu.Unlock()
	r.post(objectstore.DropJob{Job: 1})
	if s := r.stats(); s.Held != 0 || s.Objects != 0 || s.Spilled != 0 {
		t.Errorf("after the job was dropped: %+v", s)
	}
	path := killedMemory(dir).Path
	r.close(true)
	if left := filesIn(t, dir); len(left) != 0 {
		t.Errorf("spill files left: %v", left)
	}
	if left := filesAt(path); len(left) > 0 || MemoryAt(path) {
		t.Errorf("left: %v", left)
	}
}

// getOrLost is get for an object that may not be there.
func getOrLost(r *rig, u *user, id ids.ObjectID) ([]byte, error) {
	infos, err := r.store.List(context.Background(), 1, before(id), 1)
	if err != nil {
		return nil, err
	}
	if len(infos) != 1 || infos[0].ID != id {
		return nil, fmt.Errorf("object %v is not listed", id)
	}
	return u.get(id)
}

// before is the id just below.
func before(id ids.ObjectID) ids.ObjectID {
	if id.Index > 0 {
		id.Index--
		return id
	}
	id.Task[15]--
	id.Index = ^uint32(0)
	return id
}
