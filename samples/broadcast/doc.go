// Broadcast: one large array, written once into shared memory, summed by many tasks that read it
// in place.
//
//	go run ./samples/broadcast -size 1GiB -tasks 100
//
// The driver owns the only copy; tasks borrow it for their call. It fails if a sum is wrong, and with
// ErrObjectTooLarge if the array has no room in the store.
package main
