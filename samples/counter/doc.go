// Counter: an actor whose process is killed again and again while it counts. It is restarted each time,
// finds its state where it saved it, and no call is lost or counted twice.
//
//	go run ./samples/counter -calls 2000 -kill-every 250
//
// The actor owns its count and writes it to a journal before each answer. It knows a call that is made again after
// a crash by its number, and gives the same answer. A call blocks while the actor restarts; its error would be
// ErrActorDied once the restarts are used up.
package main
