// Package s3 spills to object stores: URL schemes s3 and mem, over gocloud.dev/blob. A program imports it to
// register them:
//
//	import _ "mobula/objectstore/spill/s3"
//
// The mobula binary does. The store does not import it, because linking the AWS SDK costs a process 1.5 ms of start, 0.8 MiB of private
// memory (8 MiB resident) and 20 MiB of binary, which a program whose node spills to directories need not pay.
//
//	s3://BUCKET/PREFIX?region=eu-central-1
//	s3://BUCKET?endpoint=http://HOST:PORT&use_path_style=true&region=any
//	mem://NAME
//
// The query is gocloud's (package s3blob). Credentials come from the environment, as the SDK finds them. mem lives
// in the process and is for tests.
//
// A session's files are keys under PREFIX/mobula-SESSION/. A bucket has no lock: instead, the key owner has the machine's boot id, the process
// and the node's identity. Open takes over the node's own session if no process of this machine has it, refuses another node's, and deletes
// other sessions whose process died on this machine. Sessions that died elsewhere are left to a lifecycle rule of the bucket.
//
// Calls block on the network until their context ends; the SDK tries each request three times.
package s3
