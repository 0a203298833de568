package wire

import (
	"encoding/hex"
	"strings"
)

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

// PythonFunction is the hash of the file in its job's directory that has a function's code; not ok: there is no such file.
func PythonFunction(function string) (hash [32]byte, ok bool) {
	at := strings.LastIndexByte(function, ':')
	if Language(function) != LangPython || at < len(PythonPrefix) || len(function)-at-1 != hex.EncodedLen(len(hash)) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(function[at+1:]))
	return hash, err == nil
}

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
