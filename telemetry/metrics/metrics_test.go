package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"mobula/internal/errs"
	"mobula/internal/state"
	"mobula/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// busy is a node with n of everything that can be many.
func busy(n int) Snapshot {
	s := Snapshot{Status: state.Status{Node: "n1", Started: 1e9, Now: 6e9, Resources: map[string]state.Resource{}, Restarts: map[string]uint64{"owner": uint64(n)},
		Tasks: map[string]int{"RUNNING": n, "FINISHED": 3 * n}, Actors: map[string]int{"ALIVE": n},
		Store: state.Store{Limit: 1 << 30, Held: 5, SpilledEver: 7}}, Changes: map[string]uint64{"RUNNING": uint64(n)}, WorkersBy: map[string]int{"task host": n}}
	for i := range n {
		s.Resources[fmt.Sprintf("r%04d", i)] = state.Resource{Total: 2, Free: 1}
		s.Jobs = append(s.Jobs, state.Job{ID: fmt.Sprint(i), Tasks: map[string]int{"RUNNING": 1}})
		s.Restarts[fmt.Sprintf("kind%d", i)]++
		s.Graphs = append(s.Graphs, state.Graph{Name: fmt.Sprintf("graph/%d", i), Queued: 3, Processing: 2})
	}
	return s
}

func tree(n, kinds int) []state.Component {
	var out []state.Component
	for i := range n {
		k := fmt.Sprintf("kind%03d", i%kinds)
		out = append(out, state.Component{Path: fmt.Sprintf("root/%s/%d", k, i), Kind: k, Bound: 100, Depth: i})
	}
	return out
}

func series(t *testing.T, m *Set) (n int) {
	t.Helper()
	fs, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		if strings.HasPrefix(f.GetName(), "mobula_") {
			n += len(f.Metric)
		}
	}
	return n
}

// The number of series does not grow with what users do.
func TestCardinalityIsBounded(t *testing.T) {
	count := func(n, kinds int) int {
		m := New(func(context.Context) Snapshot { return busy(n) })
		m.Mailboxes.Observe(1e9, tree(n, kinds))
		return series(t, m)
	}
	thousand, many := count(1000, 200), count(10_000, 2000)
	if many != thousand || many > 350 {
		t.Errorf("%d series for 1,000 of everything, %d for 10,000", thousand, many)
	}
	// Values beyond the bound are summed, not lost.
	sum := 0.0
	s := busy(1000)
	for _, v := range resources(&s, func(r state.Resource) float64 { return r.Total }) {
		sum += v
	}
	if sum != 2000 {
		t.Errorf("resources sum to %v, want 2000", sum)
	}
}

func TestAScrape(t *testing.T) {
	m := New(func(context.Context) Snapshot { return busy(2) })
	m.Mailboxes.Observe(1e9, tree(1, 1))
	s, err := Serve("127.0.0.1:0", "secret", m)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	status, body := scrape(t, tr, s.URL(), "Bearer secret")
	if status != http.StatusOK {
		t.Fatal(status, string(body))
	}
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{
		`mobula_node_info{node="n1"} 1`, `mobula_uptime_seconds 5`, `mobula_tasks{state="RUNNING"} 2`, `mobula_task_changes_total{state="RUNNING"} 2`,
		`mobula_store_bytes{what="limit"} 1.073741824e+09`, `mobula_store_spilled_bytes_total 7`, `mobula_component_restarts_total{kind="owner"} 2`,
		`mobula_resource_free{resource="r0001"} 1`, `mobula_mailbox_depth_count{kind="kind000"} 1`, `mobula_workers{slot="task host"} 2`, `go_goroutines`, `mobula_jobs 2`,
	} {
		if !strings.Contains(string(body), w) || !strings.Contains(string(text), w) {
			t.Errorf("a scrape has no %s", w)
		}
	}
	tr.CloseIdleConnections()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// scrape asks for a URL, and shows what is given.
func scrape(t *testing.T, tr *http.Transport, url, shows string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if shows != "" {
		req.Header.Set("Authorization", shows)
	}
	resp, err := (&http.Client{Transport: tr, Timeout: testkit.Patience()}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// Whoever does not show the token gets no metrics, and is not told what there is: every user of the machine reaches the address.
func TestAScrapeWithoutTheTokenGetsNothing(t *testing.T) {
	s, err := Serve("127.0.0.1:0", "secret", New(func(context.Context) Snapshot { return busy(2) }))
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	for _, shows := range []string{"", "Bearer", "Bearer ", "Bearer secre", "Bearer secret2", "secret", "Basic secret"} {
		for _, url := range []string{s.URL(), s.URL() + "/x"} {
			if status, body := scrape(t, tr, url, shows); status != http.StatusUnauthorized || strings.Contains(string(body), "mobula_") || strings.Contains(string(body), "go_") {
				t.Errorf("%s, shown %q: %d, %s", url, shows, status, body)
			}
		}
	}
	tr.CloseIdleConnections()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":9464", "example.org:1", "10.0.0.1:1", ""} {
		if s, err := Serve(addr, "secret", New(func(context.Context) Snapshot { return Snapshot{} })); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v", addr, err)
			if s != nil {
				_ = s.Close(t.Context())
			}
		}
	}
	s, err := Serve("127.0.0.1:0", "secret", New(func(context.Context) Snapshot { return Snapshot{} }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(s.l.Addr().String(), "secret", New(func(context.Context) Snapshot { return Snapshot{} })); err == nil || !strings.Contains(err.Error(), "port 0") {
		t.Errorf("an address that is taken: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAgesOfMailboxes(t *testing.T) {
	m := newMailboxes()
	at := func(sec int64, depth int, handled uint64) {
		m.Observe(sec*1e9, []state.Component{{Path: "root/a", Kind: "a", Bound: 10, Depth: depth, Handled: handled}, {Path: "root/sup", Kind: "sup"}})
	}
	at(1, 5, 0)     // not known before: 0
	at(2, 5, 100)   // 5 waiting, 100 a second: 50 ms
	at(3, 5, 100)   // nothing in a second: 1 s
	at(5, 5, 100)   // nothing in three
	at(6, 0, 10000) // empty: 0
	reg := prometheus.NewRegistry()
	reg.MustRegister(m.age, m.depth)
	fs, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		if len(f.Metric) != 1 || f.Metric[0].Label[0].GetValue() != "a" {
			t.Errorf("%s has series %v", f.GetName(), f.Metric)
			continue
		}
		if h := f.Metric[0].Histogram; strings.HasSuffix(f.GetName(), "age_seconds") && (h.GetSampleCount() != 5 || h.GetSampleSum() < 4.049 || h.GetSampleSum() > 4.051) {
			t.Errorf("ages %v, want 0, 0.05, 1, 3, 0", h)
		}
	}
}
