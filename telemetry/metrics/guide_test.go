package metrics

import (
	"os"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The guide names every metric that there is, and no other.
func TestTheGuideNamesTheMetrics(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`(mobula_[a-z_]+)`").FindAllSubmatch(text, -1) {
		named[string(m[1])] = true
	}
	m, a := newMailboxes(), newActors()
	descs := make(chan *prometheus.Desc, len(families)+5)
	for _, c := range []prometheus.Collector{&node{}, m.depth, m.age, a.restarts, a.seconds, a.ended} {
		c.Describe(descs)
	}
	close(descs)
	for d := range descs {
		name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]
		if !named[name] {
			t.Errorf("the guide does not name %s", name)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("the guide names %s, which is not there", name)
	}
}
