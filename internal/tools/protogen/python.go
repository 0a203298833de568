package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// pythonHead is what stands before the messages.
//
//go:embed messages_head.py
var pythonHead []byte

// python writes the messages as plain classes: a dataclass takes ten times as long to be made when it is imported.
func python(f protoreflect.FileDescriptor) ([]byte, error) {
	var s bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&s, format, args...) }
	s.Write(pythonHead)
	for _, m := range messages(f) {
		p("\n\nclass %s(Record):\n", m.Name())
		if m.Fields().Len() == 0 {
			p("    __slots__ = ()\n")
			continue
		}
		var names, params, sets []string
		for i := range m.Fields().Len() {
			fd := m.Fields().Get(i)
			if int(fd.Number()) != i+1 {
				return nil, at(fd, "field %s of message %s: the fields are numbered without a gap, Python's table depends on it", fd.Name(), m.Name())
			}
			typ, zero, ok := pythonType(fd)
			if !ok {
				return nil, at(fd, "field %s of message %s: Python has no codec for a %s", fd.Name(), m.Name(), fd.Kind())
			}
			name := string(fd.Name())
			names = append(names, fmt.Sprintf("%q", name))
			value := name
			if fd.IsList() {
				typ, zero, value = "Optional[list["+typ+"]]", "None", "[] if "+name+" is None else "+name
			}
			params = append(params, fmt.Sprintf("%s: %s = %s", name, typ, zero))
			sets = append(sets, fmt.Sprintf("        self.%s = %s\n", name, value))
		}
		if len(names) == 1 {
			names[0] += ","
		}
		p("    __slots__ = (%s)\n\n", wrap(names, 17))
		p("    def __init__(self, %s) -> None:\n%s", wrap(params, 17), strings.Join(sets, ""))
	}
	all, err := framed(f)
	if err != nil {
		return nil, err
	}
	var classes []string
	for _, m := range all {
		classes = append(classes, string(m.Name()))
	}
	p("\n\n# By the message's number in Frame, which is its kind.\n")
	p("KINDS: dict[int, type[Any]] = dict(enumerate([\n    %s], start=1))\n", wrap(classes, 4))
	p("KIND_OF: dict[type[Any], int] = {c: k for k, c in KINDS.items()}\n")
	p("\nFIELDS: dict[type[Any], list[Field]] = {\n")
	for _, m := range messages(f) {
		var fields []string
		for i := range m.Fields().Len() {
			fd := m.Fields().Get(i)
			list := ""
			if fd.IsList() {
				list = ", True"
			}
			fields = append(fields, fmt.Sprintf("Field(%d, %q, %s%s)", fd.Number(), fd.Name(), pythonKind(fd), list))
		}
		p("    %s: [%s],\n", m.Name(), wrap(fields, 8))
	}
	p("}\n")
	return s.Bytes(), nil
}

// pythonType is a field's type in Python, and its default.
func pythonType(fd protoreflect.FieldDescriptor) (typ, zero string, ok bool) {
	if fd.Message() != nil && fd.IsList() {
		return string(fd.Message().Name()), "", true
	}
	switch pythonKind(fd) {
	case `"t"`:
		return "str", `""`, true
	case `"y"`:
		return "bytes", `b""`, true
	case `"b"`:
		return "bool", "False", true
	case `"u"`, `"s"`, `"f"`, `"x"`:
		return "int", "0", true
	}
	if fd.Message() != nil {
		return "Optional[" + string(fd.Message().Name()) + "]", "None", true
	}
	return "", "", false
}

// pythonKind is how the table writes a field's kind.
func pythonKind(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return string(fd.Message().Name())
	case protoreflect.StringKind:
		return `"t"`
	case protoreflect.BytesKind:
		return `"y"`
	case protoreflect.BoolKind:
		return `"b"`
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return `"s"`
	case protoreflect.Sfixed64Kind:
		return `"f"`
	case protoreflect.Fixed64Kind:
		return `"x"`
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.EnumKind:
		return `"u"`
	}
	return ""
}

// wrap joins words to lines of at most 140 characters, the next ones indented; a field of a schema's message is short enough.
func wrap(words []string, indent int) string {
	var b strings.Builder
	col := indent
	for i, w := range words {
		if i > 0 {
			b.WriteString(",")
			if col+len(w)+2 > 140 {
				b.WriteString("\n" + strings.Repeat(" ", indent))
				col = indent
			} else {
				b.WriteString(" ")
			}
		}
		b.WriteString(w)
		col += len(w) + 2
	}
	return b.String()
}
