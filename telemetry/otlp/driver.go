package otlp

import "mobula/telemetry/export"

func init() { export.Register(driver{}) }

// driver makes the exporters.
type driver struct{}

var _ export.Driver = driver{}
