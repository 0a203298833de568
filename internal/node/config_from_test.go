package node

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"mobula/internal/config"
	"mobula/internal/errs"
)

// Every setting gets to the node: a configuration in which everything is said differs from the
// default in every field that a setting stands for.
func TestEverySettingGetsToTheNode(t *testing.T) {
	c, err := config.Load(config.Input{Home: t.TempDir(), Environ: []string{
		"MOBULA_NAME=n", "MOBULA_DIR=/d", "MOBULA_NAMESPACE=ns", "MOBULA_CPUS=3", "MOBULA_GPUS=2", "MOBULA_MEMORY=5GiB", "MOBULA_RESOURCES=tpu=1.5",
		"MOBULA_CLOSE_TIMEOUT=7s", "MOBULA_STORE_SIZE=2GiB", "MOBULA_STORE_DIR=/s", "MOBULA_STORE_SPILL=/a,/b", "MOBULA_STORE_SPILL_THRESHOLD=0.6",
		"MOBULA_STORE_ARGS_FRACTION=0.5", "MOBULA_STORE_DISK_BUDGET=1GiB", "MOBULA_STORE_INLINE_MAX=1KiB", "MOBULA_STORE_INLINE_FRACTION=0.2",
		"MOBULA_WORKERS_PROCESSES=true", "MOBULA_WORKERS_EXECUTABLE=/x", "MOBULA_WORKERS_HEAP=1MiB", "MOBULA_WORKERS_START_TIMEOUT=9s",
		"MOBULA_WORKERS_MEMORY_THRESHOLD=0.9", "MOBULA_METRICS_ADDRESS=127.0.0.1:1", "MOBULA_EVENTS_RING=11", "MOBULA_EVENTS_RATE=12",
		"MOBULA_EVENTS_SIZE=13kB", "MOBULA_EVENTS_FILES=14",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Name: "n", Dir: "/d", Namespace: "ns", CPUs: 3, GPUs: 2, Memory: 5 << 30, Resources: map[string]int64{"tpu": 1500}, CloseTimeout: 7 * time.Second,
		StoreBytes: 2 << 30, StoreDir: "/s", SpillURLs: []string{"/a", "/b"}, SpillThreshold: 0.6, ArgsFraction: 0.5, DiskBudget: 1 << 30,
		InlineMax: 1 << 10, InlineFraction: 0.2, Processes: true, Executable: "/x", WorkerHeap: 1 << 20, StartTimeout: 9 * time.Second, MemoryThreshold: 0.9,
	}
	if got := ConfigFrom(c, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got, want := TelemetryFrom(c), (Telemetry{Ring: 11, Rate: 12, FileBytes: 13_000, Files: 14, Metrics: "127.0.0.1:1"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDefaultsAreTheNodesOwn(t *testing.T) {
	c := ConfigFrom(config.Default(), nil)
	c.Dir = t.TempDir()
	got, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	bare, err := Config{Dir: c.Dir, Resources: map[string]int64{}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, bare) {
		t.Errorf("the settings' defaults give %+v\nthe node's own %+v", got, bare)
	}
	if tel := TelemetryFrom(config.Default()); tel.Ring != 100_000 || tel.Metrics != "" {
		t.Errorf("telemetry %+v", tel)
	}
}

func TestAProgramsOptionsGoFirst(t *testing.T) {
	t.Setenv("MOBULA_CONFIG", "/dev/null")
	t.Setenv("MOBULA_STORE_SIZE", "2GiB")
	t.Setenv("MOBULA_CPUS", "3")
	c, tel, err := LoadConfig(map[string]any{"store.size": "1GiB", "resources": map[string]any{"CPU": 5.0, "x": 2.0}, "events.ring": 0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.StoreBytes != 1<<30 || c.CPUs != 5 || c.Resources["x"] != 2000 || len(c.Resources) != 1 || tel.Ring != -1 {
		t.Errorf("got %+v, %+v", c, tel)
	}
	t.Setenv("MOBULA_STORE_SISE", "1")
	if _, _, err := LoadConfig(map[string]any{"cpu": 1}, nil); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), "MOBULA_STORE_SIZE?") || !strings.Contains(err.Error(), `"cpu"`) {
		t.Errorf("mistakes: %v", err)
	}
}
