package collector

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// config is the supported part of the OpenTelemetry Collector's configuration; anything else is an error.
type config struct {
	Receivers struct {
		OTLP struct {
			Protocols struct{ GRPC, HTTP *endpoint }
		}
	}
	Processors map[string]yaml.Node
	Exporters  map[string]yaml.Node
	Service    struct{ Pipelines map[string]pipeline }
}

type endpoint struct{ Endpoint string }

type pipeline struct{ Receivers, Processors, Exporters []string }

// Run starts a collector from a configuration of the OpenTelemetry Collector: receiver otlp, over grpc and http; processors
// memory_limiter and batch, which change nothing here; exporters debug and file. Each pipeline writes to its file, one request per
// line.
func Run(raw []byte) (*Collector, error) {
	var cfg config
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&cfg); err != nil {
		return nil, fmt.Errorf("collector: %w", err)
	}
	c := newCollector()
	c.files = make(map[string]*os.File)
	if err := c.run(&cfg); err != nil {
		c.Close()
		return nil, fmt.Errorf("collector: %w", err)
	}
	return c, nil
}

func (c *Collector) run(cfg *config) error {
	for name := range cfg.Processors {
		if name != "batch" && name != "memory_limiter" {
			return fmt.Errorf("processor %q is not known", name)
		}
	}
	files := make(map[string]*os.File)
	for name, node := range cfg.Exporters {
		switch name {
		case "debug":
		case "file":
			var to struct{ Path string }
			if err := node.Decode(&to); err != nil {
				return err
			}
			f, err := os.OpenFile(to.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				return err
			}
			files[name] = f
			c.stops = append(c.stops, func() { _ = f.Close() })
		default:
			return fmt.Errorf("exporter %q is not known", name)
		}
	}
	if len(cfg.Service.Pipelines) == 0 {
		return errors.New("no pipelines")
	}
	for name, p := range cfg.Service.Pipelines {
		if name != "traces" && name != "metrics" && name != "logs" {
			return fmt.Errorf("pipeline %q is not known", name)
		}
		if len(p.Receivers) != 1 || p.Receivers[0] != "otlp" || len(p.Exporters) == 0 {
			return fmt.Errorf("pipeline %s: receivers %v, exporters %v: want otlp, and one at least", name, p.Receivers, p.Exporters)
		}
		for _, of := range p.Processors {
			if _, ok := cfg.Processors[of]; !ok {
				return fmt.Errorf("pipeline %s: processor %q is not configured", name, of)
			}
		}
		for _, of := range p.Exporters {
			if _, ok := cfg.Exporters[of]; !ok {
				return fmt.Errorf("pipeline %s: exporter %q is not configured", name, of)
			}
			if f := files[of]; f != nil {
				c.files[name] = f
			}
		}
	}
	on := cfg.Receivers.OTLP.Protocols
	if on.GRPC == nil && on.HTTP == nil {
		return errors.New("receiver otlp has no protocol")
	}
	if on.GRPC != nil {
		if err := c.serveGRPC(on.GRPC.Endpoint); err != nil {
			return err
		}
	}
	if on.HTTP != nil {
		return c.serveHTTP(on.HTTP.Endpoint)
	}
	return nil
}

// write appends a request to its signal's file. mu is held.
func (c *Collector) write(signal string, r proto.Message) {
	f := c.files[signal]
	if f == nil {
		return
	}
	line, err := protojson.Marshal(r)
	if err == nil {
		_, _ = f.Write(append(line, '\n')) // the reader of the file notices that it is missing
	}
}
