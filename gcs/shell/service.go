package shell

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/micro"

	"mobula/gcs"
)

// ServiceName is the name under which `nats micro` tools find the control plane.
const ServiceName = "mobula-gcs"

// serveQuestions answers, on subjects mobula.gcs.TABLE.list and mobula.gcs.TABLE.get (the
// request's data is the key), with JSON.
func (g *GCS) serveQuestions() (micro.Service, error) {
	svc, err := micro.AddService(g.nc, micro.Config{
		Name: ServiceName, Version: "1.0.0", Description: "Tables of the Mobula control plane",
		Metadata: map[string]string{"node": g.cfg.Node},
	})
	if err != nil {
		return nil, fmt.Errorf("control plane: service: %w", err)
	}
	for _, b := range gcs.Buckets {
		group := svc.AddGroup("mobula.gcs." + string(b))
		list := func(r micro.Request) { g.answer(r, gcs.List{Bucket: b}) }
		get := func(r micro.Request) { g.answer(r, gcs.Lookup{Bucket: b, Key: string(r.Data())}) }
		if err := group.AddEndpoint("list", micro.HandlerFunc(list)); err != nil {
			return nil, fmt.Errorf("control plane: service: %w", err)
		}
		if err := group.AddEndpoint("get", micro.HandlerFunc(get)); err != nil {
			return nil, fmt.Errorf("control plane: service: %w", err)
		}
	}
	return svc, nil
}

func (g *GCS) answer(r micro.Request, op gcs.Op) {
	ctx, cancel := context.WithTimeout(g.ctx, opTimeout)
	defer cancel()
	records, err := g.Call(ctx, op)
	if err == nil {
		err = r.RespondJSON(records)
	}
	if err != nil {
		// A header line must not have a line break. The asker may be gone by now.
		_ = r.Error("500", strings.ReplaceAll(err.Error(), "\n", " "), nil)
	}
}
