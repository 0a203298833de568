// Package checkout brings a commit of the tree into a folder of its own, for tools that run on a commit while work goes on.
//
// The folder stays, so that what one commit's builds left there (environments, caches) serves the next one.
package checkout
