package memmon

import (
	"fmt"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Interval is how often a sample is taken (Ray's memory_monitor_refresh_ms).
const Interval = 250 * time.Millisecond

// HeapsInterval is how often heaps are added up if there is a Total: a heap grows by tens of megabytes in that time.
const HeapsInterval = 50 * time.Millisecond

// Config configures a Core. Zero values mean the defaults.
type Config struct {
	Spill, Pause, Terminate float64       // 0.70, 0.80 (Dask's worker.memory), 0.95 (Ray's memory_usage_threshold)
	Slack                   float64       // 0.02: how far below its threshold a level ends
	MinFree                 uint64        // 3 GiB: with large limits, terminate only below that much free (Ray's headroom); ^0: off
	KillWait                time.Duration // 10 s: for a killed worker to be gone before another is chosen
	OverAsked               float64       // 1.1: at this multiple of the memory it asked for, an isolated worker is ended
	Top                     int           // 8: rows of the table in errors
	Total                   uint64        // bytes that all processes and the store may take together; 0: no limit
}

func (c *Config) defaults() error {
	def := func(p *float64, v float64) {
		if *p == 0 {
			*p = v
		}
	}
	def(&c.Spill, 0.70)
	def(&c.Pause, 0.80)
	def(&c.Terminate, 0.95)
	def(&c.Slack, 0.02)
	def(&c.OverAsked, 1.1)
	if c.KillWait <= 0 {
		c.KillWait = 10 * time.Second
	}
	if c.Top <= 0 {
		c.Top = 8
	}
	switch c.MinFree {
	case 0:
		c.MinFree = 3 << 30
	case ^uint64(0):
		c.MinFree = 1 << 62 // so large that only the fraction counts
	}
	if !(0 < c.Spill && c.Spill <= c.Pause && c.Pause <= c.Terminate && c.Terminate <= 1) {
		return errs.New(errs.CodeInvalid, "memory thresholds spill %v, pause %v, terminate %v: want them rising, above 0, at most 1", c.Spill, c.Pause, c.Terminate)
	}
	return nil
}

// Core is the monitor's state. It is not safe for concurrent use.
type Core struct {
	cfg      Config
	level    Level
	last     Sample
	epoch    uint64
	asked    bool // AskTasks is not answered yet
	killing  ids.ClientID
	killedAt int64
	reported bool
	peaks    map[string]uint64
	heaps    heaps
	kills    uint64
	out      []Effect
}

// New makes a core.
func New(cfg Config) (*Core, error) {
	if err := cfg.defaults(); err != nil {
		return nil, err
	}
	return &Core{cfg: cfg, peaks: make(map[string]uint64)}, nil
}

// Step takes one event and returns its effects. The core owns the slice; it is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	clear(c.out)
	c.out = c.out[:0]
	switch ev := ev.(type) {
	case Sample:
		c.onSample(now, ev)
	case Heaps:
		if c.cfg.Total > 0 {
			c.emit(StoreRoom{c.heaps.room(now, ev.Bytes, c.cfg.Total)})
		}
	case Tasks:
		if c.asked && ev.Epoch == c.epoch {
			c.asked = false
			c.decide(now, ev.Tasks)
		}
	case WorkerGone:
		if ev.Worker == c.killing {
			c.killing = 0 // the next sample shows what the kill freed
		}
	default:
		panic(fmt.Sprintf("memmon: unknown event %T", ev)) // a bug in the program: supervision reports it
	}
	return c.out
}

// Level gives the present level.
func (c *Core) Level() Level { return c.level }

// Kills counts the workers ended for memory.
func (c *Core) Kills() uint64 { return c.kills }

// Peak gives the most bytes that an isolated worker of the function, or one that was ended because of it, has
// reached; 0: unknown.
func (c *Core) Peak(fn string) uint64 { return c.peaks[fn] }

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

func (c *Core) onSample(now int64, s Sample) {
	c.last = s
	for _, w := range s.Workers {
		if w.Own != "" && w.Bytes > c.peaks[w.Own] {
			c.peaks[w.Own] = w.Bytes
		}
	}
	c.setLevel(s)
	if c.killing != 0 && now-c.killedAt < int64(c.cfg.KillWait) {
		return
	}
	c.killing = 0
	for _, w := range s.Workers {
		if w.Asked > 0 && w.Own != "" && !w.Driver && float64(w.Bytes) > float64(w.Asked)*c.cfg.OverAsked {
			c.kill(now, w, w.Own, fmt.Sprintf("it uses %s and asked for %s of memory", size(w.Bytes), size(w.Asked)))
			return
		}
	}
	if c.level < Terminate {
		c.asked = false
		return
	}
	if c.asked { // the owners were asked at the last sample and have not answered
		c.asked = false
		c.decide(now, nil)
		return
	}
	c.epoch++
	c.asked = true
	c.emit(AskTasks{Epoch: c.epoch})
}

// setLevel sets the level from a sample. A level ends only with some slack.
func (c *Core) setLevel(s Sample) {
	if s.Limit == 0 {
		return
	}
	to := Normal
	for l, at := range [...]float64{Spill: c.cfg.Spill, Pause: c.cfg.Pause, Terminate: c.cfg.Terminate} {
		bytes := at * float64(s.Limit)
		if Level(l) == Terminate { // on a large node 5 % is much
			bytes = max(bytes, float64(s.Limit)-float64(c.cfg.MinFree))
		}
		if c.level >= Level(l) {
			bytes -= c.cfg.Slack * float64(s.Limit)
		}
		if l > 0 && float64(s.Used) > bytes {
			to = Level(l)
		}
	}
	if to == c.level {
		return
	}
	if to < Terminate {
		c.reported = false
	}
	c.level = to
	c.emit(SetLevel{Level: to, Used: s.Used, Limit: s.Limit})
}
