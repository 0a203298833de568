package jobfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"mobula/internal/safefs"
	"mobula/wire"
)

func TestADriverIsFoundAgainByItsProcess(t *testing.T) {
	d := &Dir{Path: t.TempDir(), Keep: true, Warn: func(msg string, args ...any) { t.Error(msg, args) }}
	functions := []wire.FuncInfo{{Name: "f", Signature: 7}}
	said := &wire.Program{Language: "python", Version: "3.11", Args: []string{"python3", "-c", ""}, Single: true, Template: true}
	others := []wire.Program{{Language: "go", Args: []string{"/bin/kernels"}}}
	d.Note(3, File{
		Client: 9, PID: int32(os.Getpid()), Functions: functions, Said: said, Others: others, Namespace: "ns", Environ: wire.PackEnviron([]string{"A=1", "B=\xff"}),
	})
	f, ok, err := d.Read(3)
	if err != nil || !ok || f.Client != 9 || !f.Alive() || f.Namespace != "ns" || !reflect.DeepEqual(f.Functions, functions) || !reflect.DeepEqual(f.Said, said) || !reflect.DeepEqual(f.Others, others) ||
		!reflect.DeepEqual(wire.UnpackEnviron(f.Environ), []string{"A=1", "B=\xff"}) {
		t.Fatalf("read back %+v, %v", f, ok)
	}
	if exe, err := os.Executable(); err != nil || f.Exe != exe {
		t.Errorf("executable %q, want %q (%v)", f.Exe, exe, err)
	}
	shared := filepath.Join(d.Shared(3), "functions")
	if err := os.MkdirAll(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	f.Started++
	if f.Alive() {
		t.Error("another process of the same number passes for the driver")
	}
	if err := d.Drop(3); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := d.Read(3); ok {
		t.Error("the file of an ended job is still there")
	}
	if safefs.Exists(d.Shared(3)) {
		t.Error("what the processes of an ended job shared is still there")
	}
	if err := d.Drop(3); err != nil {
		t.Errorf("dropped twice: %v", err)
	}
}

func TestAProcessThatIsGoneIsNotAlive(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f := File{PID: int32(cmd.Process.Pid), Started: startOf(int32(cmd.Process.Pid))}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if f.Alive() {
		t.Errorf("process %d has ended and passes for alive", f.PID)
	}
}
