package shell

import (
	"strings"

	"mobula/internal/ids"
)

// The subjects on which nodes that may not write to the tables speak with the service. That a node uses no other home's is up to NATS
// (permissions).

// requests are the subjects on which a node asks for something.
func requests(home ids.Home, what string) string {
	return "mobula.gcs.from." + home.String() + "." + what
}

// requestsOfAll is what the service subscribes to.
func requestsOfAll(what string) string { return "mobula.gcs.from.*." + what }

// answers begins the subjects on which a node gets answers. The service answers on no other: else a node could have it say something in its place.
func answers(home ids.Home) string { return "mobula.gcs.to." + home.String() }

// feedOf is the subject on which a server tells how the tables change.
func feedOf(server string) string { return "mobula.gcs.feed." + server }

// asker is the home that a request's subject has.
func asker(subject string) string {
	rest := strings.TrimPrefix(subject, "mobula.gcs.from.")
	home, _, _ := strings.Cut(rest, ".")
	return home
}
