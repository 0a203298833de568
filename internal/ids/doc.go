// Package ids holds the identifiers that every part of the runtime shares.
//
// Task and object ids are derived, never random: a task's id follows from its parent's id and the parent's call
// counter, so a parent that runs again derives the same ids for its children and finds their results. Nothing in
// this package blocks, holds state or fails except the parsers, which return ErrBadID.
package ids
