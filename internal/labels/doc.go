// Package labels says what a label of a node may be: a key and a value, as users write them.
//
// A key is a name, or a domain, a slash and a name: "zone", "example.com/rack". A name has at most 63 letters, digits, dots, dashes and
// underscores, and a letter or digit at either end. A value is like a name. These are the rules of Ray and Kubernetes, so that labels from there can be
// used as they are. The keys of the domain Domain are the runtime's own.
//
// The package has no state, and nothing in it blocks. Its errors say what is wrong with a key or a value and what is valid; whoever reads the labels
// says where they are from, and gives the error its code.
package labels
