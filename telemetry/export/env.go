package export

import (
	"slices"
	"strings"

	"mobula/internal/errs"
)

// protocol is how to export, empty if not at all.
type protocol string

const (
	grpcProtocol protocol = "grpc"
	httpProtocol protocol = "http/protobuf"
)

// fromEnv reads what the environment asks for.
func fromEnv(getenv func(string) string) (protocol, error) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	switch kinds := strings.Split(strings.ToLower(get("OTEL_TRACES_EXPORTER")), ","); {
	case slices.Equal(kinds, []string{""}):
		if get("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
			return "", nil
		}
	case slices.Equal(kinds, []string{"none"}):
		return "", nil
	case slices.Equal(kinds, []string{"otlp"}):
	default:
		return "", errs.New(errs.CodeInvalid, "OTEL_TRACES_EXPORTER: %q: want otlp or none; no spans are exported", get("OTEL_TRACES_EXPORTER"))
	}
	name := "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	if get(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	switch p := protocol(strings.ToLower(get(name))); p {
	case grpcProtocol, httpProtocol:
		return p, nil
	case "":
		return httpProtocol, nil // OpenTelemetry's default
	default:
		return "", errs.New(errs.CodeInvalid, "%s: %q: want %s or %s; no spans are exported", name, p, grpcProtocol, httpProtocol)
	}
}
