// Package inbox passes items from any goroutine to one that takes all items at once.
//
// An Inbox owns the items that were not taken. Add and Take do not block. There is no bound: the callers of Add must bound the
// number of items. There are no errors.
package inbox
