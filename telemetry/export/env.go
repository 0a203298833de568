package export

import (
	"slices"
	"strconv"
	"strings"

	"mobula/internal/errs"
)

// protocol is how to export, empty if not at all.
type protocol string

const (
	grpcProtocol protocol = "grpc"
	httpProtocol protocol = "http/protobuf"
)

// signal is what is exported, as the variables call it and as people do.
type signal struct{ name, what string }

var (
	traces  = signal{"TRACES", "spans"}
	metrics = signal{"METRICS", "metrics"}
	logs    = signal{"LOGS", "log records"}
)

// fromEnv reads what the environment asks for.
func fromEnv(getenv func(string) string, of signal) (protocol, error) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	exporter := "OTEL_" + of.name + "_EXPORTER"
	switch kinds := strings.Split(strings.ToLower(get(exporter)), ","); {
	case slices.Equal(kinds, []string{""}):
		if get("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && get("OTEL_EXPORTER_OTLP_"+of.name+"_ENDPOINT") == "" {
			return "", nil
		}
	case slices.Equal(kinds, []string{"none"}):
		return "", nil
	case slices.Equal(kinds, []string{"otlp"}):
	default:
		return "", errs.New(errs.CodeInvalid, "%s: %q: want otlp or none; no %s are exported", exporter, get(exporter), of.what)
	}
	name := "OTEL_EXPORTER_OTLP_" + of.name + "_PROTOCOL"
	if get(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	switch p := protocol(strings.ToLower(get(name))); p {
	case grpcProtocol, httpProtocol:
		return p, nil
	case "":
		return httpProtocol, nil // OpenTelemetry's default
	default:
		return "", errs.New(errs.CodeInvalid, "%s: %q: want %s or %s; no %s are exported", name, p, grpcProtocol, httpProtocol, of.what)
	}
}

// queueSize reads how many spans or log records may wait.
func queueSize(getenv func(string) string, name string) int {
	const most = 2048 // OpenTelemetry's default
	if n, err := strconv.Atoi(strings.TrimSpace(getenv(name))); err == nil && n > 0 {
		return n
	}
	return most
}
