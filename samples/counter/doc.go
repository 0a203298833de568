// Counter: an actor whose process is killed again and again while it counts. It is restarted each time,
// finds its state where it saved it, and no call is lost or counted twice.
//
//	go run ./samples/counter -calls 2000 -kill-every 250
//
// The actor owns its count and the journal it is written to, before each answer: a call that is
// made again after a crash is known by its number, and gets the answer it had. A call blocks while the actor
// restarts; its error would be ErrActorDied once the restarts are used up.
package main
