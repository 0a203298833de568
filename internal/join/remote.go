package join

import (
	"context"
	"os"
	"strings"

	"mobula/internal/node"
	"mobula/internal/safefs"
	"mobula/internal/trust"
)

// isNetwork tells whether an address is HOST:PORT of a cluster, and no path of a node on this machine.
func isNetwork(address string) bool {
	return strings.Contains(address, ":") && !strings.Contains(address, "/") && !safefs.Exists(address)
}

// connectRemote joins a cluster on other machines: with a node in this process that has the role of a driver and, unless told, no CPUs.
func connectRemote(ctx context.Context, address string, cfg ConnectConfig) (*Session, error) {
	options := map[string]any{"join": address}
	if cfg.Namespace != "" {
		options["namespace"] = cfg.Namespace
	}
	ncfg, tel, err := node.LoadConfig(options, cfg.Log)
	if err != nil {
		return nil, err
	}
	if ncfg.Wires.Token = cfg.Token; cfg.Token == "" {
		ncfg.Wires.Token = os.Getenv("MOBULA_TOKEN")
	}
	ncfg.Wires.Role, ncfg.Processes = trust.Driver, true
	others, err := programs(ctx, cfg.Python)
	if err != nil {
		return nil, err
	}
	return startNode(ctx, ncfg, tel, others)
}
