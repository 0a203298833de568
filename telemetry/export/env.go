package export

import (
	"slices"
	"strings"

	"mobula/internal/errs"
)

// Protocol is the protocol to export by; empty means no export.
type Protocol string

// The protocols of OTLP.
const (
	GRPC Protocol = "grpc"
	HTTP Protocol = "http/protobuf"
)

// Signal is what is exported: its name in the variables, and its name for people.
type Signal struct{ Name, What string }

// The signals of OpenTelemetry.
var (
	Traces  = Signal{"TRACES", "spans"}
	Metrics = Signal{"METRICS", "metrics"}
	Logs    = Signal{"LOGS", "log records"}
)

// fromEnv reads the protocol for a signal from the environment.
func fromEnv(getenv func(string) string, of Signal) (Protocol, error) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	exporter := "OTEL_" + of.Name + "_EXPORTER"
	switch kinds := strings.Split(strings.ToLower(get(exporter)), ","); {
	case slices.Equal(kinds, []string{""}):
		if get("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && get("OTEL_EXPORTER_OTLP_"+of.Name+"_ENDPOINT") == "" {
			return "", nil
		}
	case slices.Equal(kinds, []string{"none"}):
		return "", nil
	case slices.Equal(kinds, []string{"otlp"}):
	default:
		return "", errs.New(errs.CodeInvalid, "%s: %q: want otlp or none; no %s are exported", exporter, get(exporter), of.What)
	}
	name := "OTEL_EXPORTER_OTLP_" + of.Name + "_PROTOCOL"
	if get(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	switch p := Protocol(strings.ToLower(get(name))); p {
	case GRPC, HTTP:
		return p, nil
	case "":
		return HTTP, nil // OpenTelemetry's default
	default:
		return "", errs.New(errs.CodeInvalid, "%s: %q: want %s or %s; no %s are exported", name, p, GRPC, HTTP, of.What)
	}
}
