package errs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mobula/internal/ids"
)

// Code is an error's name on the wire. Values are never reused or renumbered.
type Code uint16

// The codes. The comment of each sentinel below says what it means.
const (
	CodeUnknown Code = iota
	CodeTaskFailed
	CodeWorkerCrashed
	CodeActorDied
	CodeActorUnavailable
	CodeObjectTooLarge
	CodeStoreFull
	CodeOutOfDisk
	CodeOutOfMemory
	CodeObjectLost
	CodeObjectFreed
	CodeReconstructionFailed
	CodeOwnerDied
	CodeFetchTimedOut
	CodeGetTimeout
	CodeCancelled
	CodeUnschedulable
	CodePendingCallsLimit
	CodeRuntimeSetup
	CodeUnknownFunction
	CodeRegistryMismatch
	CodeNotEncodable
	CodeNotDecodable
	CodeNameTaken
	CodeNotFound
	CodeShutdown
	CodeViewClosed
	CodeProtocol
	CodePermission
	CodeInvalid
	CodeDeadline
	CodePanic
	CodeReturnMismatch
	CodeSegmentUnavailable
	CodeComponentFailed
	CodeUser // an application's own registered sentinel or type, named in Error.Name
	CodeDisconnected
	CodeBacklog
	CodeNoNode
	CodeNodeRunning
	CodeVersion
	CodePython // an exception of a Python function; Error.Name has its classes
	CodeDeadlock
	codeEnd
)

// Sentinels, one for each code.
var (
	ErrTaskFailed           = errors.New("task failed")                                // the function returned an error or panicked; mobula.TaskError has the cause
	ErrWorkerCrashed        = errors.New("worker process died")                        // and its retries are used up
	ErrActorDied            = errors.New("actor died")                                 // and will not come back
	ErrActorUnavailable     = errors.New("actor unavailable")                          // it is restarting; the call may be made again
	ErrObjectTooLarge       = errors.New("object larger than the store")               // names bytes asked, limit, held, pinned
	ErrStoreFull            = errors.New("object store full")                          // views and unfinished puts keep all of it and of its disk budget
	ErrOutOfDisk            = errors.New("spill storage full")                         // every spill directory is full, missing or failing
	ErrOutOfMemory          = errors.New("task killed by the memory monitor")          // the message says which task and why
	ErrObjectLost           = errors.New("object lost")                                // no copy is left and it cannot be made again
	ErrObjectFreed          = errors.New("object freed")                               // its last reference was released; is also ErrObjectLost
	ErrReconstructionFailed = errors.New("object could not be made again")             // is also ErrObjectLost
	ErrOwnerDied            = errors.New("owner died")                                 // is also ErrObjectLost
	ErrFetchTimedOut        = errors.New("object fetch timed out")                     // is also ErrObjectLost; names object and holder
	ErrGetTimeout           = errors.New("get timed out")                              // the references stay valid; is also context.DeadlineExceeded
	ErrCancelled            = errors.New("task cancelled")                             // is also context.Canceled
	ErrUnschedulable        = errors.New("task can never be scheduled")                // the node does not have the resources asked for
	ErrPendingCallsLimit    = errors.New("too many pending calls")                     // the actor's MaxPendingCalls is reached
	ErrRuntimeSetup         = errors.New("process could not be started")               //
	ErrUnknownFunction      = errors.New("function not registered")                    //
	ErrRegistryMismatch     = errors.New("driver and worker registries differ")        // names the function
	ErrNotEncodable         = errors.New("value cannot be encoded")                    // names the type
	ErrNotDecodable         = errors.New("value cannot be decoded")                    // names both types
	ErrNameTaken            = errors.New("actor name taken")                           //
	ErrNotFound             = errors.New("not found")                                  //
	ErrShutdown             = errors.New("runtime shut down")                          //
	ErrViewClosed           = errors.New("view used after close")                      //
	ErrProtocol             = errors.New("protocol violation")                         // malformed, truncated or oversized frame, bad hello
	ErrPermission           = errors.New("permission denied")                          // another user's connection
	ErrInvalid              = errors.New("invalid argument")                           //
	ErrDeadline             = errors.New("deadline passed")                            // of a task, or of a node that is to answer; is also context.DeadlineExceeded
	ErrPanic                = errors.New("function panicked")                          //
	ErrReturnMismatch       = errors.New("attempts differ in what they returned")      // a retry streamed a different number of items
	ErrSegmentUnavailable   = errors.New("shared memory cannot be reserved")           // /dev/shm or cgroup too small
	ErrComponentFailed      = errors.New("component failed beyond its restart policy") // escalation reached the root
	ErrDisconnected         = errors.New("connection lost")                            // the process at the other end is gone, or has read nothing for too long
	ErrBacklog              = errors.New("the other side reads too slowly")            // more waits for it than the bound allows; nothing was sent
	ErrNoNode               = errors.New("no node is running there")                   // names the socket
	ErrNodeRunning          = errors.New("a node is running there already")            // names the socket
	ErrVersion              = errors.New("versions do not match")                      // names both; is also ErrProtocol
	ErrDeadlock             = errors.New("waits for itself")                           // an actor's call waits for another of the same actor, which cannot begin
	ErrPython               = errors.New("exception of a Python function")             // that a Python function raised; mobula.PythonError has its class
)

type row struct {
	sentinel error
	broader  Code  // 0: none
	also     error // a standard-library sentinel that it also matches
}

var table = [codeEnd]row{
	CodeTaskFailed:           {sentinel: ErrTaskFailed},
	CodeWorkerCrashed:        {sentinel: ErrWorkerCrashed},
	CodeActorDied:            {sentinel: ErrActorDied},
	CodeActorUnavailable:     {sentinel: ErrActorUnavailable},
	CodeObjectTooLarge:       {sentinel: ErrObjectTooLarge},
	CodeStoreFull:            {sentinel: ErrStoreFull},
	CodeOutOfDisk:            {sentinel: ErrOutOfDisk},
	CodeOutOfMemory:          {sentinel: ErrOutOfMemory},
	CodeObjectLost:           {sentinel: ErrObjectLost},
	CodeObjectFreed:          {sentinel: ErrObjectFreed, broader: CodeObjectLost},
	CodeReconstructionFailed: {sentinel: ErrReconstructionFailed, broader: CodeObjectLost},
	CodeOwnerDied:            {sentinel: ErrOwnerDied, broader: CodeObjectLost},
	CodeFetchTimedOut:        {sentinel: ErrFetchTimedOut, broader: CodeObjectLost, also: context.DeadlineExceeded},
	CodeGetTimeout:           {sentinel: ErrGetTimeout, also: context.DeadlineExceeded},
	CodeCancelled:            {sentinel: ErrCancelled, also: context.Canceled},
	CodeUnschedulable:        {sentinel: ErrUnschedulable},
	CodePendingCallsLimit:    {sentinel: ErrPendingCallsLimit},
	CodeRuntimeSetup:         {sentinel: ErrRuntimeSetup},
	CodeUnknownFunction:      {sentinel: ErrUnknownFunction},
	CodeRegistryMismatch:     {sentinel: ErrRegistryMismatch},
	CodeNotEncodable:         {sentinel: ErrNotEncodable},
	CodeNotDecodable:         {sentinel: ErrNotDecodable},
	CodeNameTaken:            {sentinel: ErrNameTaken},
	CodeNotFound:             {sentinel: ErrNotFound},
	CodeShutdown:             {sentinel: ErrShutdown},
	CodeViewClosed:           {sentinel: ErrViewClosed},
	CodeProtocol:             {sentinel: ErrProtocol},
	CodePermission:           {sentinel: ErrPermission},
	CodeInvalid:              {sentinel: ErrInvalid},
	CodeDeadline:             {sentinel: ErrDeadline, also: context.DeadlineExceeded},
	CodePanic:                {sentinel: ErrPanic},
	CodeReturnMismatch:       {sentinel: ErrReturnMismatch},
	CodeSegmentUnavailable:   {sentinel: ErrSegmentUnavailable},
	CodeComponentFailed:      {sentinel: ErrComponentFailed},
	CodeDisconnected:         {sentinel: ErrDisconnected},
	CodeBacklog:              {sentinel: ErrBacklog},
	CodeNoNode:               {sentinel: ErrNoNode},
	CodeNodeRunning:          {sentinel: ErrNodeRunning},
	CodeVersion:              {sentinel: ErrVersion, broader: CodeProtocol},
	CodePython:               {sentinel: ErrPython},
	CodeDeadlock:             {sentinel: ErrDeadlock},
}

// Error is an error that can cross processes.
type Error struct {
	Code  Code
	Msg   string   // one line: what was wrong, with which value, and what to do
	Name  string   // CodeTaskFailed: the function; CodeUser: the registered name; CodePython: see Exception
	Task  string   // the task it happened in, if any
	Stack string   // the stack of a panic, or the traceback of a Python function; else empty
	Cause []*Error // what it wraps; more than one for joined errors
	Data  []byte   // CodeUser: the value of a registered type, as CBOR; nil of a sentinel

	// Refs are the objects that Data, or Python's exception, has references to. The owner of an object that failed with the
	// error keeps them as long as that object.
	Refs []ids.ObjectID
	held any // keeps Refs alive in this process; nil: nothing does
}

// New makes an *Error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Error is the message, prefixed with the sentinel's text unless the message contains it.
func (e *Error) Error() string {
	s := e.sentinel()
	switch {
	case s == nil, strings.Contains(e.Msg, s.Error()):
		return e.Msg
	case e.Msg == "":
		return s.Error()
	}
	return s.Error() + ": " + e.Msg
}

func (e *Error) sentinel() error {
	if e.Code == CodeUser {
		if e.Data != nil {
			return nil
		}
		return userSentinel(e.Name)
	}
	if int(e.Code) < len(table) {
		return table[e.Code].sentinel
	}
	return nil
}

// Is matches the sentinel of the code and of every broader one.
func (e *Error) Is(target error) bool {
	if e.Code == CodeUser {
		return e.Data == nil && userSentinel(e.Name) == target
	}
	for c := e.Code; c != CodeUnknown && int(c) < len(table); c = table[c].broader {
		if table[c].sentinel == target || (table[c].also != nil && table[c].also == target) {
			return true
		}
	}
	return false
}

// Unwrap gives the causes. For an error of a registered type it gives that error first.
func (e *Error) Unwrap() []error {
	out := make([]error, 0, len(e.Cause)+1)
	if err := e.typed(); err != nil {
		out = append(out, err)
	}
	for _, c := range e.Cause {
		out = append(out, c)
	}
	return out
}
