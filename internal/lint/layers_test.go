package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// layer is a row of ARCHITECTURE's table: directories, each with what is below it unless another row names that, and the rows that their
// packages may import besides their own.
type layer struct {
	name    string
	dirs    []string
	imports []string
}

// layers from the bottom up: a row may import only rows before it.
var layers = []layer{
	{"ids and errors", words("internal/cborform internal/errs internal/ids internal/labels internal/release"), nil},
	{"data structures", words("internal/heap internal/queue internal/vclock"), nil},
	{"tools", words("internal/inbox internal/lend internal/machine internal/memstat internal/pidfd internal/safefs internal/sockets internal/steady"), words("ids-and-errors data-structures")},
	{"protocol", words("wire internal/protofield"), words("ids-and-errors tools")},
	{"settings", words("internal/config"), words("ids-and-errors")},
	{"home", words("internal/home"), words("ids-and-errors tools")},
	{"trust", words("internal/trust"), words("ids-and-errors tools home")},
	{"kit", words("actors"), words("ids-and-errors tools")},
	{"state", words("internal/state"), words("ids-and-errors data-structures")},
	{"faults", words("internal/fault"), words("ids-and-errors tools protocol")},
	{"plans of faults", words("chaos"), words("ids-and-errors faults")},
	{"shared memory", words("objectstore/segment"), words("ids-and-errors tools protocol")},
	{"straight calls", words("internal/direct"), words("ids-and-errors data-structures tools protocol")},
	{"one process' side", words("worker internal/client internal/codec internal/registry internal/link"),
		words("ids-and-errors data-structures tools protocol state faults shared-memory straight-calls")},
	{"traces", words("telemetry"), words("ids-and-errors protocol")},
	{"graph cores", words("graph graph/order graph/internal graph/sim"), words("ids-and-errors data-structures")},
	{"cores", words("raylet raylet/cluster raylet/internode raylet/memmon raylet/owner raylet/pool raylet/sched objectstore objectstore/spill objectstore/spill/format graph/run gcs gcs/directory gcs/model remote remote/clocks remote/membership remote/membership/model remote/transfer"),
		words("ids-and-errors data-structures tools protocol home graph-cores trust straight-calls")},
	{"shells and I/O", words(`gcs/shell graph/run/shell internal/guard objectstore/shell objectstore/index objectstore/spill/shell objectstore/spill/storage
		objectstore/spill/disk raylet/oplog raylet/pool/proc remote/membership/memnet remote/membership/shell remote/shell remote/transfer/shell`),
		words("ids-and-errors data-structures tools protocol home kit shared-memory one-process'-side graph-cores traces cores trust")},
	{"graphs of a program", words("graph/spec graph/ship"), words("ids-and-errors protocol one-process'-side traces graph-cores cores shells-and-I/O")},
	{"watching", words("telemetry/events telemetry/export telemetry/logs telemetry/metrics telemetry/phases telemetry/rotate telemetry/timeline"),
		words("ids-and-errors data-structures tools protocol state traces cores")},
	{"networks of tests", words("internal/loopback internal/netns"), nil},
	{"drivers", words("objectstore/spill/s3 telemetry/otlp"), words("ids-and-errors protocol traces watching cores shells-and-I/O")},
	{"assembly", words("internal/node"),
		words("ids-and-errors data-structures tools protocol settings home trust kit state faults shared-memory straight-calls one-process'-side traces graph-cores cores shells-and-I/O watching")},
	{"simulation", words("internal/world"), words("ids-and-errors data-structures protocol cores assembly")},
	{"calls", words("internal/call"), words("ids-and-errors protocol state one-process'-side graphs-of-a-program")},
	{"joining", words("internal/join"), words("tools protocol trust faults plans-of-faults one-process'-side assembly")},
	{"public API", words(". arrowipc"),
		words("ids-and-errors protocol state faults plans-of-faults one-process'-side graph-cores graphs-of-a-program assembly calls joining")},
	{"tests of programs", words("mobulatest"), words("ids-and-errors trust faults plans-of-faults networks-of-tests assembly joining public-API")},
	{"using it", words("samples"), words("plans-of-faults drivers public-API tests-of-programs")},
	{"command line", words("cmd/mobula"), words("ids-and-errors tools protocol settings trust state drivers assembly")},
	{"measuring it", words("benchmarks"), words("networks-of-tests state traces drivers assembly public-API")},
	{"simulating it", words("benchmarks/sim"), words("ids-and-errors data-structures protocol cores")},
	{"generators", words("internal/tools wire/pb"), words("ids-and-errors")},
	{"its tests", words("e2e internal/lint internal/testkit internal/transcript gcs/gcstest telemetry/collector internal/home/register/registertest internal/trust/trusttest objectstore/spill/storage/storagetest"), words("anything")},
}

// homes are the modules of others, each with the directories that may import it. Another one begins with a line here.
var homes = map[string][]string{
	"github.com/DeRuina/timberjack":      words("raylet/pool/proc"),
	"github.com/apache/arrow-go/v18":     words("arrowipc"),
	"github.com/asynkron/protoactor-go":  words("actors benchmarks/actorbench benchmarks/mobench"), // which measure it too
	"github.com/aws/smithy-go":           words("objectstore/spill/s3"),
	"github.com/bufbuild/protocompile":   words("internal/tools"),
	"github.com/cockroachdb/datadriven":  words("internal/transcript"),
	"github.com/dustin/go-humanize":      words("cmd internal/config raylet/memmon samples"),
	"github.com/fxamacker/cbor/v2":       words(". cmd graph/run/shell graph/ship internal/call internal/cborform internal/client internal/codec internal/errs internal/node internal/state"),
	"github.com/hashicorp/memberlist":    words("remote/membership/memnet remote/membership/shell"),
	"github.com/jedib0t/go-pretty/v6":    words("cmd"),
	"github.com/knadh/koanf":             words("internal/config"),
	"github.com/nats-io":                 words("gcs/gcstest gcs/shell"),
	"github.com/prometheus":              words("telemetry/metrics telemetry/export telemetry/otlp"),
	"github.com/schollz/progressbar/v3":  words("samples"),
	"github.com/spf13/cobra":             words("cmd"),
	"github.com/spf13/pflag":             words("internal/config"),
	"github.com/x448/float16":            words("internal/codec"),
	"go.opentelemetry.io/contrib":        words("telemetry/otlp"),
	"go.opentelemetry.io/otel":           words(". internal/call internal/node telemetry telemetry/otlp"),
	"go.opentelemetry.io/otel/sdk":       words("telemetry/otlp"),
	"go.opentelemetry.io/otel/exporters": words("telemetry/otlp"),
	"go.opentelemetry.io/proto":          words("telemetry/collector"),
	"go.uber.org/goleak":                 words("mobulatest"),
	"go.yaml.in/yaml/v3":                 words("internal/tools telemetry/collector"),
	"gocloud.dev":                        words("objectstore/spill/s3"),
	"golang.org/x/sys":                   words("benchmarks cmd e2e internal objectstore raylet wire"),
	"golang.org/x/term":                  words("cmd"),
	"google.golang.org/grpc":             words("telemetry/collector"),
	"golang.org/x/sync":                  words("internal/tools"),
	"google.golang.org/protobuf":         words("internal/codec internal/protofield internal/tools telemetry/collector wire"),
	"pgregory.net/rapid":                 words("internal/testkit"),
}

// layerOf is the row of a package: that of the longest directory.
func layerOf(p string) *layer {
	var best *layer
	long := -1
	for i, l := range layers {
		for _, dir := range l.dirs {
			if in(p, dir) && len(dir) > long {
				best, long = &layers[i], len(dir)
			}
		}
	}
	return best
}

// homeOf is the longest line of homes that an import path is of.
func homeOf(path string) string {
	best := ""
	for m := range homes {
		if in(path, m) && len(m) > len(best) {
			best = m
		}
	}
	return best
}

// crossing says what is wrong with an import, if anything is.
func crossing(from, to string) string {
	if !in(to, module) {
		home := homeOf(to)
		switch {
		case home == "":
			return fmt.Sprintf("%s imports %s, which no package may: see homes", from, to)
		case !slices.ContainsFunc(homes[home], func(dir string) bool { return in(from, dir) }):
			return fmt.Sprintf("%s imports %s, which only %s may", from, to, strings.Join(homes[home], ", "))
		}
		return ""
	}
	f, t := layerOf(from), layerOf(short(to))
	switch {
	case f == nil:
		return fmt.Sprintf("%s is in no layer", from)
	case t == nil:
		return fmt.Sprintf("%s is in no layer", short(to))
	case f == t, slices.Contains(f.imports, "anything"), slices.Contains(f.imports, strings.ReplaceAll(t.name, " ", "-")):
		return ""
	}
	return fmt.Sprintf("%s (%s) imports %s (%s)", from, f.name, short(to), t.name)
}

func TestImportsKeepToTheirLayers(t *testing.T) {
	used := make(map[string]bool)
	for path, p := range packages(t) {
		if !p.ours() {
			continue
		}
		if layerOf(short(path)) == nil {
			t.Errorf("%s is in no layer", short(path))
		}
		for _, to := range p.Imports {
			if first, _, _ := strings.Cut(to, "/"); first != module && !strings.Contains(first, ".") {
				continue // the standard library
			}
			used[homeOf(to)] = true
			if wrong := crossing(short(path), to); wrong != "" {
				t.Error(wrong)
			}
		}
	}
	for m := range homes {
		if !used[m] {
			t.Errorf("homes names %s, which nobody imports: delete the line", m)
		}
	}
}

// The table has no circle, since a row names only rows before it, and no directory that is not there.
func TestTheLayersAreATable(t *testing.T) {
	var below []string
	for _, l := range layers {
		for _, name := range l.imports {
			if name != "anything" && !slices.Contains(below, name) {
				t.Errorf("%s may import %s, which is no layer below it", l.name, name)
			}
		}
		below = append(below, strings.ReplaceAll(l.name, " ", "-"))
		for _, dir := range l.dirs {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(packages(t))), func(path string) bool { return in(path, module) && in(short(path), dir) }) {
				t.Errorf("%s names %s, where no package is", l.name, dir)
			}
		}
	}
}

func TestTheLayerRules(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"wire", "mobula/internal/ids", ""},
		{"raylet/owner", "mobula/wire", ""},
		{"samples/sort", "mobula", ""},
		{"actors", "github.com/asynkron/protoactor-go/actor", ""},
		{"wire", "mobula/raylet/owner", "wire (protocol) imports raylet/owner (cores)"},
		{"internal/client", "mobula/internal/node", "(assembly)"},
		{"samples/sort", "mobula/internal/node", "(assembly)"},
		{"internal/node", "mobula/telemetry/otlp", "(drivers)"},
		{"objectstore/new", "mobula/cmd/mobula", "(command line)"},
		{"internal/none", "mobula/wire", "internal/none is in no layer"},
		{"raylet", "github.com/asynkron/protoactor-go/actor", "which only actors"},
		{"telemetry/metrics", "go.opentelemetry.io/otel/sdk/trace", "which only telemetry/otlp"},
		{"raylet", "example.com/new/module", "which no package may"},
	} {
		if got := crossing(c.from, c.to); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}
