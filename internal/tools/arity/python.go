package main

import (
	"bytes"
	"fmt"
	"strings"
)

// pythons are the handles of functions and classes that a Python worker imports. They have the same types as the handles
// of registered functions and classes.
func pythons() string {
	var b bytes.Buffer
	for n := range 6 {
		s := shape{args: names(n)}
		generic, inst := typeParams(s.args, "R")
		fmt.Fprintf(&b, `
// PythonFunc%[1]d is the Python function of that module and name, which takes %[2]s. The program that calls it was started or
// connected with Python (WithPython, ConnectPython). The options are the defaults of its calls.
func PythonFunc%[1]d%[3]s(module, name string, opts ...TaskOption) Func%[1]d%[4]s {
	return Func%[1]d%[4]s{pythonFunc(module, name, call.Shape{Kind: call.Plain, In: %[5]s, Out: []*call.Plan{call.PlanOf[R]()}, Returns: 1}, opts)}
}
`, n, arguments(n), generic, inst, s.plans())
	}
	for n := range 5 {
		for m := 2; m <= 3; m++ {
			s := shape{args: names(n), rets: results(m)}
			generic, inst := typeParams(s.args, s.rets...)
			fmt.Fprintf(&b, `
// PythonFunc%[1]dx%[2]d is a Python function that takes %[3]s and returns %[2]d values, each an object of its own; see PythonFunc%[1]d.
func PythonFunc%[1]dx%[2]d%[4]s(module, name string, opts ...TaskOption) Func%[1]dx%[2]d%[5]s {
	return Func%[1]dx%[2]d%[5]s{pythonFunc(module, name, call.Shape{Kind: call.Plain, In: %[6]s, Out: []*call.Plan{%[7]s}, Returns: %[2]d}, opts)}
}
`, n, m, arguments(n), generic, inst, s.plans(), each(s.rets, "call.PlanOf[NAME]()", ", "))
		}
	}
	for n := range 5 {
		s := shape{args: names(n)}
		generic, inst := typeParams(s.args, "R")
		fmt.Fprintf(&b, `
// PythonFuncN%[1]d is a Python function that takes %[2]s and returns as many values as its caller asks for, each an object of
// its own; see PythonFunc%[1]d.
func PythonFuncN%[1]d%[3]s(module, name string, opts ...TaskOption) FuncN%[1]d%[4]s {
	return FuncN%[1]d%[4]s{pythonFunc(module, name, call.Shape{Kind: call.Plain, In: %[5]s, Out: []*call.Plan{call.PlanOf[R]()}, Returns: 1}, opts)}
}
`, n, arguments(n), generic, inst, s.plans())
	}
	for n := range 5 {
		s := shape{args: names(n)}
		generic, inst := typeParams(s.args, "T")
		fmt.Fprintf(&b, `
// PythonStream%[1]d is a Python generator that takes %[2]s. Each item is an object of its own, which the consumer can have before
// the generator ends; see PythonFunc%[1]d.
func PythonStream%[1]d%[3]s(module, name string, opts ...StreamOption) StreamFunc%[1]d%[4]s {
	return StreamFunc%[1]d%[4]s{pythonFunc(module, name, call.Shape{Kind: call.Plain, In: %[5]s, Out: []*call.Plan{call.PlanOf[T]()}, Returns: call.Streaming}, opts)}
}
`, n, arguments(n), generic, inst, s.plans())
	}
	return b.String() + pythonActors()
}

func pythonActors() string {
	var b bytes.Buffer
	for n := range 6 {
		s := shape{args: names(n)}
		generic, inst := typeParams(s.args, "T")
		fmt.Fprintf(&b, `
// PythonActor%[1]d is the Python class of that module and name, whose constructor takes %[2]s, as an actor type. T only
// tells this class from others, in Go: use any type of the program. The options are the defaults of its creations.
func PythonActor%[1]d%[3]s(module, name string, opts ...ActorOption) Actor%[1]d%[4]s {
	return Actor%[1]d%[4]s{pythonFunc(module, name, call.Shape{Kind: call.Construct, In: %[5]s, Returns: 1}, opts)}
}
`, n, arguments(n), generic, inst, s.plans())
	}
	for n := range 5 {
		s := shape{args: names(n)}
		generic, inst := typeParams(append([]string{"T"}, s.args...), "R")
		fmt.Fprintf(&b, `
// PythonMethod%[1]d is a method of a Python class that takes %[2]s. The options are the defaults of its calls.
func PythonMethod%[1]d%[3]s(actor ActorType[T], name string, opts ...CallOption) Method%[1]d%[4]s {
	return Method%[1]d%[4]s{pythonMethod(actor, name, call.Shape{Kind: call.Method, In: %[5]s, Out: []*call.Plan{call.PlanOf[R]()}, Returns: 1}, opts)}
}
`, n, arguments(n), generic, inst, s.plans())
	}
	for n := range 3 {
		s := shape{args: names(n)}
		generic, inst := typeParams(append([]string{"T"}, s.args...), "R")
		fmt.Fprintf(&b, `
// PythonStreamMethod%[1]d is a generator method of a Python class that takes %[2]s; see PythonStream%[1]d.
func PythonStreamMethod%[1]d%[3]s(actor ActorType[T], name string, opts ...CallOption) StreamMethod%[1]d%[4]s {
	return StreamMethod%[1]d%[4]s{pythonMethod(actor, name, call.Shape{Kind: call.Method, In: %[5]s, Out: []*call.Plan{call.PlanOf[R]()}, Returns: call.Streaming}, opts)}
}
`, n, arguments(n), generic, inst, s.plans())
	}
	return b.String()
}

// typeParams gives the type parameters as they are declared, and as they are used.
func typeParams(args []string, rets ...string) (declared, used string) {
	list := strings.Join(append(append([]string{}, args...), rets...), ", ")
	return "[" + list + " any]", "[" + list + "]"
}
