// Package transcript tests a core by stories: files of testdata/transcripts, each of blocks in which a line gives the core one event, and below
// four dashes stands all that it then asks for, in words. They are read from top to bottom, as etcd-io/raft has them.
//
//	want square 1
//	----
//	pool <- a worker for lease 1
//
// What is said is compared word for word. Where it has changed on purpose,
//
//	go test ./PACKAGE -run Transcripts -rewrite
//
// writes the files anew: read the difference before you commit it. A core's commands, and the words for its effects, are in the
// transcript_test.go of its package.
package transcript
