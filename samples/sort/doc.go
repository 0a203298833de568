// Sort: an external sort of generated 100-byte records, of which memory holds a part. Every
// parameter changes its speed; none but a partition larger than the store changes its result.
//
//	go run ./samples/sort -size 2GiB -store 512MiB -partitions 100 -workers 2
//
// Tasks make, cut and merge; all data lies in the object store, which spills what it cannot hold. The driver
// keeps references and counts alone, and waits for one range of the result after the other. It fails if an
// order, a count or a checksum is wrong, and with ErrObjectTooLarge, at once, if a
// partition cannot fit the store.
package main
