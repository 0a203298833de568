// Package harness is what the end-to-end tests share: nodes whose parts a test can ask, temporary directories,
// limits and polling. What it starts for a test it ends with that test.
//
// Each wait ends with its context, and says what it waited for. A failure fails the test that asked.
package harness
