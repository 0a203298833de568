package errs

// The public package's types, as it has them.

type shownTask struct {
	Name, Task, Stack string
	err               *Error
}

func (e *shownTask) Error() string        { return e.err.Error() }
func (e *shownTask) Is(target error) bool { return e.err.Is(target) }
func (e *shownTask) As(target any) bool   { return asOwn(e.err, target) }

type shownException Exception

func (e *shownException) Error() string      { return e.Message }
func (e *shownException) As(target any) bool { return asOwn(Raised(Exception(*e)), target) }

func asOwn(e *Error, target any) bool {
	p, ok := target.(**Error)
	if ok {
		*p = e
	}
	return ok
}

func init() {
	Show(func(e *Error) (*shownTask, bool) {
		return &shownTask{Name: e.Name, Task: e.Task, Stack: e.Stack, err: e}, e.OfTask()
	})
	Show(func(e *Error) (*shownException, bool) {
		x, ok := e.Exception()
		return (*shownException)(&x), ok
	})
}
