package codec

import (
	"fmt"
	"reflect"
	"time"

	"mobula/internal/errs"
)

// A time is encoded as RFC 3339 text, which says less than a time.Time holds, and decoded also from a number of seconds, which may be any. What the
// text cannot say is refused both ways: else a value that was read here could be written and not be read again.

// The seconds of a time's own clock that begin year 0, and end year 9999.
const firstSecond, lastSecond = -62167219200, 253402300799

const day = 24 * 60 * 60

// unsayable tells why RFC 3339 cannot say a time; "" if it can. It does not ask for the year, which Go has wrong at the ends of what a time.Time holds.
func unsayable(t time.Time) string {
	_, zone := t.Zone()
	switch own := t.Unix() + int64(zone); {
	case own < firstSecond || own > lastSecond:
		return fmt.Sprintf("the time %v (%d s from 1970) is not of the years 0 to 9999", t, t.Unix())
	case zone <= -day || zone >= day || zone%60 != 0:
		return fmt.Sprintf("the time %v is in a zone %d s away from UTC, and only whole minutes of less than a day can be encoded: take its UTC()", t, zone)
	}
	return ""
}

func collectTime(v reflect.Value) error {
	t := v.Interface().(time.Time)
	if t.IsZero() { // it is null
		return nil
	}
	if why := unsayable(t); why != "" {
		return errs.New(errs.CodeNotEncodable, "time.Time: %s", why)
	}
	return nil
}

// attachTime puts what this machine's zone, or the writer's, keeps from being said again in UTC.
func attachTime(v reflect.Value) error {
	t := v.Interface().(time.Time)
	if unsayable(t) == "" {
		return nil
	}
	t = t.UTC()
	if why := unsayable(t); why != "" {
		return errs.New(errs.CodeNotDecodable, "time.Time: %s", why)
	}
	v.Set(reflect.ValueOf(t))
	return nil
}
