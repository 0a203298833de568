// Package protofield is what generated codecs are made of (internal/tools/protogen): that of an owner's log (raylet/owner/record) and that of the
// messages between nodes (raylet/internode). It has writers of single protobuf fields, and the walk over the fields of a message.
//
// # Writing
//
// The Put functions append one field, and leave out what has its zero value; an element of a list is always written. A message inside another stands
// between Open and Shut: its length has four bytes, as a varint may have, so that nothing is moved when it is known.
//
// # Reading
//
// Each walks over the fields of a message; whoever reads ignores numbers that it does not know. What is read shares nothing with the bytes, but for
// Field.B itself. A list is allocated once (More), so that what is read takes no more memory than its elements do.
//
// A text is any bytes, as a Go string is: these codecs do not ask for UTF-8.
//
// # State, blocking and errors
//
// The package has no state and nothing in it blocks. An error says what is wrong with a field; the package that calls wraps it.
package protofield
