// Package metrics serves a node's metrics to Prometheus.
//
// A scrape asks the node for a Snapshot and turns it into series. On the hot path only calls of actors are counted, by class
// (Actors.Record). Mailboxes are observed once a second while the endpoint is on or metrics are exported (Mailboxes.Observe).
// Labels have fixed values (states, kinds of component, kinds of bytes) or bounded ones (resource names, classes of actors):
// the number of series does not grow with tasks, jobs, functions or workers.
//
// # Who owns what
//
// A Set owns its registry: nothing is registered globally, so several nodes can be in a process.
// A Server owns its listener, which must be on a loopback address: there is no authentication.
//
// # What blocks
//
// A scrape waits for the node's answer, at most ScrapeTimeout; parts that did not answer in
// time are left out and counted in mobula_scrape_silent_components. Close ends scrapes under way.
//
// # Errors
//
// errs.ErrInvalid for an address that is not loopback; the system's error for an address in use.
package metrics
