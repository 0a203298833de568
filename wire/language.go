package wire

import "strings"

// The languages of functions.
const (
	LangGo     = "go"
	LangPython = "python"
)

// PythonPrefix begins the name of a Python function: "py:module.function" where the worker imports it,
// "py:module.function:<sha256>" where its code is in the job's directory, and "py:module.function:<sha256>+" where
// its code is the value of the call's last argument. The function's name may have any characters, also colons. Every
// other name is a registered Go function's.
const PythonPrefix = "py:"

// SystemPrefix begins the names of the functions that a node runs in its own process, whatever the job's program is: no
// program registers one.
const SystemPrefix = "mobula:"

// Language tells which language's workers know a function, an actor type or a method of that name.
func Language(function string) string {
	if strings.HasPrefix(function, PythonPrefix) {
		return LangPython
	}
	return LangGo
}
