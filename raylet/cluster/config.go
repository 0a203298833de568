package cluster

import (
	"errors"
	"fmt"
)

// Config is what the policies decide by. Start from DefaultConfig.
type Config struct {
	// SpreadThreshold is the utilisation up to which a node is as good as an idle one. Default 0.5, as Ray's scheduler_spread_threshold.
	SpreadThreshold float64
	// TopK and TopKFraction say among how many of the best nodes one is drawn: the fraction of the nodes that take work, at least TopK. Defaults 1 and
	// 0.2, as Ray's scheduler_top_k_absolute and scheduler_top_k_fraction. With 1 and 0 it is always the best one.
	TopK         int
	TopKFraction float64
	// AvoidGPU keeps what asks for no GPU from nodes that have one, while another is free. Default true, as Ray's scheduler_avoid_gpu_nodes.
	AvoidGPU bool
	// HotStore is the share of its object store's memory from which a node is hot. Default 0.8, from which a store spills (objectstore.Config), as Ray's
	// object_spilling_threshold.
	HotStore float64
	// HeavyArgs is from how many bytes of a task's arguments on the node that is free a task goes there though it is utilised above the threshold: to move them
	// costs more than a busier node. Default 1 MiB. In Ray the threshold holds whatever the arguments weigh.
	HeavyArgs uint64
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{SpreadThreshold: 0.5, TopK: 1, TopKFraction: 0.2, AvoidGPU: true, HotStore: 0.8, HeavyArgs: 1 << 20}
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var es []error
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			es = append(es, fmt.Errorf("cluster: "+format, args...))
		}
	}
	bad(c.SpreadThreshold >= 0 && c.SpreadThreshold <= 1, "spread threshold %v, want 0 to 1", c.SpreadThreshold)
	bad(c.TopK >= 1, "top k %d, want at least 1", c.TopK)
	bad(c.TopKFraction >= 0 && c.TopKFraction <= 1, "top k fraction %v, want 0 to 1", c.TopKFraction)
	bad(c.HotStore > 0 && c.HotStore <= 1, "hot store %v, want above 0 and at most 1", c.HotStore)
	return errors.Join(es...)
}
