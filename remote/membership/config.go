package membership

import (
	"errors"
	"fmt"
	"time"
)

// Config is what a Core is told. All fields but Random must be set; DefaultConfig sets all but the node.
type Config struct {
	Self Node

	// Accusers is about how many nodes ask the control plane at once about one life: it has to hear of it, and not from each of thousands of nodes.
	Accusers int
	// AccuseEvery is how long a node that has not asked waits until it considers it again, with twice the chance. One that has asked waits as long, and
	// then twice as long each time, up to AccuseMax.
	AccuseEvery time.Duration
	AccuseMax   time.Duration
	// AccuseBurst is how many questions a node asks in AccuseEvery, whatever dies.
	AccuseBurst int

	// ClashEvery is how often it is told again that two nodes are there with one home.
	ClashEvery time.Duration

	Loads Pace

	// Random gives a number in [0, n). nil: always 0, so that every node asks at once.
	Random func(n int64) int64
}

// DefaultConfig is for nodes of one data centre.
func DefaultConfig(self Node) Config {
	return Config{
		Self:     self,
		Accusers: 3, // as many as memberlist asks to probe a node in another's place: one of them is heard, even if one is slow and one is dead itself
		// A heartbeat each second (JudgeConfig.Beat): an answer cannot be there sooner.
		AccuseEvery: time.Second, AccuseMax: 30 * time.Second, AccuseBurst: 10,
		ClashEvery: time.Minute,
		Loads:      DefaultPace(),
	}
}

// Validate tells what is wrong.
func (c Config) Validate() error {
	var wrong []error
	if c.Self.Epoch == 0 {
		wrong = append(wrong, errors.New("the node's epoch is 0, epochs begin with 1"))
	}
	if c.Accusers < 1 || c.AccuseBurst < 1 {
		wrong = append(wrong, fmt.Errorf("%d accusers with %d questions each; both must be at least 1", c.Accusers, c.AccuseBurst))
	}
	if c.AccuseEvery <= 0 || c.AccuseMax < c.AccuseEvery {
		wrong = append(wrong, fmt.Errorf("questions every %v up to every %v; the first must be above 0, the second not below the first", c.AccuseEvery, c.AccuseMax))
	}
	if c.ClashEvery <= 0 {
		wrong = append(wrong, fmt.Errorf("clashes told every %v; it must be above 0", c.ClashEvery))
	}
	wrong = append(wrong, c.Loads.Validate())
	return errors.Join(wrong...)
}
