package telemetry

import (
	"encoding/binary"
	"strconv"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// DefaultRatio is the default share of root tasks that are traced.
const DefaultRatio = 0.01

// Sampler decides which tasks are traced. The zero value begins no traces.
type Sampler struct {
	bound uint64 // of 2^63: traces whose id is below it are sampled
	alone bool   // decides again even if the parent has decided
}

// NewSampler is OpenTelemetry's parentbased_traceidratio.
func NewSampler(ratio float64) Sampler {
	switch {
	case ratio >= 1:
		return Sampler{bound: 1 << 63}
	case !(ratio > 0):
		return Sampler{}
	}
	return Sampler{bound: uint64(ratio * (1 << 63))}
}

// SamplerFromEnv reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG; without them ratio
// counts. On an error it returns the sampler of ratio.
func SamplerFromEnv(getenv func(string) string, ratio float64) (Sampler, error) {
	def := NewSampler(ratio)
	name := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER")))
	if name == "" {
		return def, nil
	}
	kind, parent := strings.CutPrefix(name, "parentbased_")
	var s Sampler
	switch kind {
	case "always_on":
		s = NewSampler(1)
	case "always_off":
		s = NewSampler(0)
	case "traceidratio":
		r := 1.0 // OpenTelemetry's default
		if arg := strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER_ARG")); arg != "" {
			var err error
			if r, err = strconv.ParseFloat(arg, 64); err != nil || !(r >= 0 && r <= 1) {
				return def, errs.New(errs.CodeInvalid, "OTEL_TRACES_SAMPLER_ARG: %q: want a fraction from 0 to 1; %g is used", arg, ratio)
			}
		}
		s = NewSampler(r)
	default:
		return def, errs.New(errs.CodeInvalid, "OTEL_TRACES_SAMPLER: %q: want always_on, always_off or traceidratio, each also after parentbased_; the ratio %g is used", name, ratio)
	}
	s.alone = !parent
	return s, nil
}

// Decide gives a new task its context. parent is the caller's: the span that the call is
// made in, or that of the task that makes it; zero if there is none.
func (s Sampler) Decide(parent wire.TraceContext, task ids.TaskID) wire.TraceContext {
	if parent.TraceID == ([16]byte{}) {
		trace := task.Trace()
		return wire.TraceContext{TraceID: trace, Flags: s.flag(trace[8:])}
	}
	if s.alone {
		parent.Flags = parent.Flags&^1 | s.flag(parent.TraceID[8:])
	}
	return parent
}

// flag compares as OpenTelemetry's SDK does, so that both decide in the same way on a trace.
func (s Sampler) flag(low []byte) byte {
	if binary.BigEndian.Uint64(low)>>1 < s.bound {
		return 1
	}
	return 0
}
