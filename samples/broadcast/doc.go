// Broadcast: one large array, written once into shared memory, summed by many tasks that read it
// in place.
//
//	go run ./samples/broadcast -size 1GiB -tasks 100
//
// The driver owns the only copy on its node; tasks borrow it for their call. On a cluster (MOBULA_ADDRESS, see mobula cluster local) tasks run
// on all nodes, and each node gets one copy; unless told the array takes half of the smallest store. It fails if a sum is wrong, and with
// ErrObjectTooLarge if the array has no room in the store.
package main
