// Package metrics shows a node to Prometheus.
//
// A scrape asks the node for a Snapshot and turns it into series; nothing is counted on the
// hot path for it but calls of actors, by class (Actors.Record). Mailboxes are looked at once a second while the endpoint
// is on or metrics are exported (Mailboxes.Observe). Labels are of fixed sets (states, kinds of component, kinds of bytes) or
// bounded (resource names, classes of actors): the number of series does not grow with tasks, jobs, functions
// or workers.
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
// errs.ErrInvalid for an address that is not loopback; the system's for one that is taken.
package metrics
