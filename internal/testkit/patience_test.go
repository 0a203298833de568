package testkit

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAWaitEndsWhenItsConditionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		Eventually(t, "a second later", func() bool { return time.Since(begin) >= time.Second })
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// failing is a test that notes that it was ended.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper()                        {}
func (f *failing) Fatalf(format string, _ ...any) { f.said = format; panic(f) }

func TestAWaitThatNeverEndsFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, wait := range map[string]func(testing.TB){
			"Eventually": func(t testing.TB) { Eventually(t, "true", func() bool { return false }) },
			"Receive":    func(t testing.TB) { Receive(t, "a word", make(chan string)) },
		} {
			f, begin := &failing{TB: t}, time.Now()
			func() {
				defer func() { recover() }()
				wait(f)
			}()
			if took := time.Since(begin); f.said == "" || took < Patience() || took > Patience()+time.Second {
				t.Errorf("%s: %q after %v", name, f.said, took)
			}
		}
	})
}

func TestWithinEndsWithThePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, ctx := time.Now(), Within(t)
		<-ctx.Done()
		if took := time.Since(begin); took != Patience() {
			t.Errorf("it took %v", took)
		}
	})
}
