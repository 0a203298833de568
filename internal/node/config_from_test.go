package node

import (
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula/internal/config"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Every setting gets to the node: a configuration in which everything is said differs from the
// default in every field that a setting stands for.
func TestEverySettingGetsToTheNode(t *testing.T) {
	c, err := config.Load(config.Input{Home: t.TempDir(), Environ: []string{
		"MOBULA_NAME=n", "MOBULA_DIR=/d", "MOBULA_NAMESPACE=ns", "MOBULA_CPUS=3", "MOBULA_GPUS=2", "MOBULA_MEMORY=5GiB", "MOBULA_RESOURCES=tpu=1.5", "MOBULA_LABELS=zone=a, rack=3",
		"MOBULA_CLOSE_TIMEOUT=7s", "MOBULA_WAIT_FOR_NODES=1m", "MOBULA_STORE_SIZE=2GiB", "MOBULA_STORE_DIR=/s", "MOBULA_STORE_SPILL=/a,/b", "MOBULA_STORE_SPILL_THRESHOLD=0.6",
		"MOBULA_STORE_ARGS_FRACTION=0.5", "MOBULA_STORE_DISK_BUDGET=1GiB", "MOBULA_STORE_INLINE_MAX=1KiB", "MOBULA_STORE_INLINE_FRACTION=0.2",
		"MOBULA_WORKERS_PROCESSES=true", "MOBULA_WORKERS_EXECUTABLE=/x", "MOBULA_WORKERS_HEAP=1MiB", "MOBULA_WORKERS_START_TIMEOUT=9s",
		"MOBULA_WORKERS_MEMORY_THRESHOLD=0.9", "MOBULA_METRICS_ADDRESS=127.0.0.1:1", "MOBULA_EVENTS_RING=11", "MOBULA_EVENTS_RATE=12",
		"MOBULA_EVENTS_SIZE=13kB", "MOBULA_EVENTS_FILES=14", "MOBULA_TRACE_RATIO=0.25",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Name: "n", Dir: "/d", Namespace: "ns", CPUs: 3, GPUs: 2, Memory: 5 << 30, Resources: map[string]int64{"tpu": 1500}, Labels: map[string]string{"zone": "a", "rack": "3"}, CloseTimeout: 7 * time.Second, WaitForNodes: time.Minute,
		StoreBytes: 2 << 30, StoreDir: "/s", SpillURLs: []string{"/a", "/b"}, SpillThreshold: 0.6, ArgsFraction: 0.5, DiskBudget: 1 << 30,
		InlineMax: 1 << 10, InlineFraction: 0.2, Processes: true, Executable: "/x", WorkerHeap: 1 << 20, StartTimeout: 9 * time.Second, MemoryThreshold: 0.9, TraceRatio: 0.25,
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

// An amount of CPUs counts where it is said first, as the setting or among the resources.
func TestResourcesAndTheirOwnSettings(t *testing.T) {
	for _, c := range []struct {
		env     []string
		options map[string]any
		want    float64
	}{
		{[]string{"MOBULA_RESOURCES=CPU=5"}, map[string]any{"cpus": 2}, 2},
		{[]string{"MOBULA_CPUS=2"}, map[string]any{"resources": map[string]any{"cpu": 5}}, 5},
		{[]string{"MOBULA_CPUS=2", "MOBULA_RESOURCES=CPU=5"}, nil, 5},
		{[]string{"MOBULA_RESOURCES=CPU=5"}, nil, 5},
	} {
		in, err := config.Load(config.Input{Home: t.TempDir(), Environ: c.env, Options: c.options})
		if err != nil {
			t.Fatal(err)
		}
		if got := ConfigFrom(in, nil); got.CPUs != c.want || len(got.Resources) != 0 {
			t.Errorf("%v, %v: %v CPUs and %v, want %v", c.env, c.options, got.CPUs, got.Resources, c.want)
		}
	}
}

// The node's share of traced tasks gets to its drivers, and OTEL_ variables go before it.
func TestTheShareOfTracedTasksGetsToDrivers(t *testing.T) {
	share := func(c Config) int {
		w := &wire.Welcome{TraceMillionths: c.traceMillionths()}
		decide, n := sampler(w, slog.New(slog.DiscardHandler)), 0
		for i := range uint64(2000) {
			if decide(wire.TraceContext{}, ids.Derive(ids.RootTask(1, 2), i)).Sampled() {
				n++
			}
		}
		return n
	}
	for ratio, most := range map[float64][2]int{-1: {0, 0}, 0: {5, 50}, 0.5: {900, 1100}, 1: {2000, 2000}, 1e-9: {0, 3}} {
		c, err := Config{TraceRatio: ratio}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		if n := share(c); n < most[0] || n > most[1] {
			t.Errorf("of 2000 tasks %d are traced with a share of %v, want %v", n, ratio, most)
		}
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	if n := share(Config{TraceRatio: -1}); n != 2000 {
		t.Errorf("OTEL_TRACES_SAMPLER=always_on: %d of 2000 are traced", n)
	}
}

// No CPUs are none, and not those of the machine.
func TestNoCPUsAreNone(t *testing.T) {
	c, err := config.Load(config.Input{Options: map[string]any{"cpus": 0, "listen": "127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := ConfigFrom(c, nil).withDefaults()
	if err != nil || cfg.CPUs != 0 {
		t.Errorf("%v CPUs, %v", cfg.CPUs, err)
	}
	if i := slices.IndexFunc(cfg.resources(), func(r wire.Resource) bool { return r.Name == "CPU" && r.Amount != 0 }); i >= 0 {
		t.Errorf("it has %v", cfg.resources()[i])
	}
}
