// Sort: an external sort of generated 100-byte records; only a part of them fits memory. Parameters change its
// speed, not its result, unless a partition is larger than the store.
//
//	go run ./samples/sort -size 2GiB -store 512MiB -partitions 100 -workers 2
//
// Tasks make, cut and merge data; all data lies in the object store, which spills what it cannot hold. The driver
// keeps only references and counts, and waits for one range of the result after another. It fails if an order, a
// count or a checksum is wrong, and at once with ErrObjectTooLarge if a partition cannot fit the store.
package main
