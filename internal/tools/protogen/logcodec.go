package main

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// given is the number, in the log alone, that tells whether the options of a task name resources; see record.proto.
const given = 20

// logNumber is the number in the log of a field of options.
func logNumber(n int) int {
	if n >= given {
		n++
	}
	return n
}

// A logMessage is one that the log has, as a record or inside one.
type logMessage struct {
	protoreflect.MessageDescriptor
	typ     string // its Go struct, qualified
	options bool   // it is a task's options
	cols    []column
}

// records writes the codec of the log: the messages of its schema, and those that they have inside.
func records(log, wire protoreflect.FileDescriptor, in *goTypes) ([]byte, error) {
	s := goSource("record", "mobula/internal/ids", "mobula/raylet/owner/actor", "mobula/raylet/owner/task", "mobula/wire")
	var todo []*logMessage
	known := map[string]bool{"errs.Error": true} // by hand: it is bounded
	add := func(m protoreflect.MessageDescriptor, typ string) {
		if !known[typ] {
			known[typ] = true
			todo = append(todo, &logMessage{MessageDescriptor: m, typ: typ, options: typ == "wire.TaskOptions"})
		}
	}
	for _, m := range messages(log) {
		if typ := "record." + string(m.Name()); in.structs[typ] != nil {
			add(m, typ)
		}
	}
	for i := 0; i < len(todo); i++ { // which grows
		m := todo[i]
		var err error
		if m.cols, err = in.columns(m, m.typ, m.ParentFile() == wire); err != nil {
			return nil, err
		}
		for _, c := range m.cols {
			if c.Message() != nil {
				add(c.Message(), strings.TrimLeft(c.typ, "[]*"))
			}
		}
		s.appender(in, m)
		s.reader(in, m)
	}
	for _, m := range messages(log) {
		if !slices.ContainsFunc(todo, func(t *logMessage) bool { return t.MessageDescriptor == m }) {
			return nil, at(m, "message %s is no record in Go, and inside none", m.Name())
		}
	}
	return s.gofmt()
}

// local is a type as package record writes it.
func local(typ string) string { return strings.TrimPrefix(typ, "record.") }

// places says where the fields of a message are while it is written: the parameters, and the place of a path. Of a record
// with other structs inside those come one by one, so that nobody copies them to write them.
func (m *logMessage) places(in *goTypes) (params string, at func(path string) string) {
	nested := slices.ContainsFunc(m.cols, func(c column) bool {
		return strings.Contains(c.path, ".") || strings.HasPrefix(c.typ, "wire.") && c.Message() != nil
	})
	if !nested || !strings.HasPrefix(m.typ, "record.") {
		return "r *" + local(m.typ), func(path string) string { return "r." + path }
	}
	var list []string
	place := make(map[string]string) // of a path's first step
	for _, f := range in.structs[m.typ] {
		typ := f.typ
		if in.structs[typ] != nil {
			typ = "*" + typ
		}
		if f.embedded {
			name := local(f.typ)
			name = strings.ToLower(name[:1]) + name[1:]
			for _, inner := range in.structs[f.typ] {
				place[inner.name] = name + "." + inner.name
			}
			list = append(list, name+" "+strings.Replace(typ, "record.", "", 1))
			continue
		}
		place[f.name] = strings.ToLower(f.name)
		list = append(list, strings.ToLower(f.name)+" "+typ)
	}
	return strings.Join(list, ", "), func(path string) string {
		first, rest, inside := strings.Cut(path, ".")
		if inside {
			return place[first] + "." + rest
		}
		return place[first]
	}
}

func (s *source) appender(in *goTypes, m *logMessage) {
	params, at := m.places(in)
	s.p("\nfunc append%s(b []byte, %s) []byte {\n", m.Name(), params)
	for _, c := range m.cols {
		if c.Message() != nil && c.typ != "*errs.Error" || c.typ == "[]uint32" {
			s.p("var at int\n")
			break
		}
	}
	told := !m.options
	for _, c := range m.cols {
		n := c.num()
		if m.options {
			n = logNumber(n)
		}
		if !told && n > given {
			told = true
			s.p("b = putBool(b, %d, r.Resources != nil)\n", given)
		}
		of := c.ContainingOneof()
		if of == nil {
			s.put(in, c, n, at(c.path))
			continue
		}
		if of.Fields().Get(0) == c.FieldDescriptor {
			s.p("if %s != 0 {\n", at(c.path))
			s.put(in, c, n, at(c.path))
			s.p("} else {\n")
		} else {
			s.put(in, c, n, at(c.path))
			s.p("}\n")
		}
	}
	s.p("return b\n}\n")
}

// put writes the statements that append the field that is there.
func (s *source) put(in *goTypes, c column, n int, at string) {
	inside := func(x string) {
		s.p("b, at = open(b, %d)\nb = append%s(b, %s)\nb = shut(b, at)\n", n, c.Message().Name(), x)
	}
	switch {
	case c.typ == "*errs.Error":
		s.p("b = appendError(b, %d, %s, 0)\n", n, at)
	case c.Message() != nil && c.IsList():
		s.p("for i := range %s {\n", at)
		inside("&" + at + "[i]")
		s.p("}\n")
	case c.Message() != nil && strings.HasPrefix(c.typ, "*"):
		inside(at)
	case c.Message() != nil:
		inside(pointer(at))
	case c.typ == "[]uint32":
		s.p("if len(%s) > 0 {\nb, at = open(b, %d)\nb = appendNumbers(b, %[1]s)\nb = shut(b, at)\n}\n", at, n)
	case c.typ == "[]ids.ObjectID":
		s.p("for i := range %s {\nb = putObject(b, %d, &%[1]s[i])\n}\n", at, n)
	case c.typ == "ids.ObjectID":
		s.p("if !%s.IsZero() {\nb = putObject(b, %d, %s)\n}\n", at, n, pointer(at))
	case c.typ == "ids.TaskID":
		s.p("b = putTask(b, %d, &%s)\n", n, at)
	case c.typ == "ids.ActorID":
		s.p("b = putTask(b, %d, (*ids.TaskID)(&%s))\n", n, at)
	case c.Kind() == protoreflect.BytesKind && c.typ == "[]byte":
		s.p("b = putBytes(b, %d, %s)\n", n, at)
	case c.Kind() == protoreflect.BytesKind && strings.HasPrefix(c.typ, "["): // it is there with what is around it
		s.p("if %s != (%s{}) {\nb = putBytes(b, %d, %s[:])\n}\n", at[:strings.LastIndexByte(at, '.')], local(c.in), n, at)
	case c.Kind() == protoreflect.StringKind:
		s.p("b = putString(b, %d, %s)\n", n, at)
	case c.Kind() == protoreflect.BoolKind:
		s.p("b = putBool(b, %d, %s)\n", n, at)
	case !strings.Contains(in.number(c.typ), "int"):
		s.fail(noCodec(c))
	case c.Kind() == protoreflect.Sint32Kind || c.Kind() == protoreflect.Sint64Kind:
		s.p("b = putInt(b, %d, %s)\n", n, convert("int64", c.typ, at))
	case c.Kind() == protoreflect.Uint32Kind || c.Kind() == protoreflect.Uint64Kind || c.Kind() == protoreflect.EnumKind:
		s.p("b = putUint(b, %d, %s)\n", n, convert("uint64", c.typ, at))
	default:
		s.fail(noCodec(c))
	}
}

// pointer writes a pointer to the struct at a place: to a field, or what a parameter is.
func pointer(at string) string {
	if strings.Contains(at, ".") {
		return "&" + at
	}
	return at
}

func (s *source) reader(in *goTypes, m *logMessage) {
	s.p("\nfunc read%s(b []byte, r *%s) error {\nreturn eachField(b, func(f field) (err error) {\nswitch f.num {\n", m.Name(), local(m.typ))
	told := !m.options
	for _, c := range m.cols {
		n := c.num()
		if m.options {
			n = logNumber(n)
		}
		if !told && n > given {
			told = true
			s.p("case %d:\nif f.n != 0 && r.Resources == nil {\nr.Resources = []wire.Resource{}\n}\n", given)
		}
		s.p("case %d:\n", n)
		s.take(in, c)
	}
	s.p("}\nreturn err\n})\n}\n")
}

// take writes the statements that read a field of r.
func (s *source) take(in *goTypes, c column) {
	at, typ := "r."+c.path, local(c.typ)
	switch {
	case c.typ == "*errs.Error":
		s.p("%s, err = parseError(f.b, 0)\n", at)
	case c.Message() != nil && c.IsList():
		s.p("err = read%s(f.b, more(&%s))\n", c.Message().Name(), at)
	case c.Message() != nil && strings.HasPrefix(typ, "*"):
		s.p("%s = new(%s)\nerr = read%s(f.b, %[1]s)\n", at, typ[1:], c.Message().Name())
	case c.Message() != nil:
		s.p("err = read%s(f.b, &%s)\n", c.Message().Name(), at)
	case c.typ == "[]uint32":
		s.p("%s, err = f.numbers()\n", at)
	case c.typ == "[]ids.ObjectID":
		s.p("err = f.object(more(&%s))\n", at)
	case c.typ == "ids.ObjectID":
		s.p("err = f.object(&%s)\n", at)
	case c.typ == "ids.TaskID":
		s.p("err = f.task(&%s)\n", at)
	case c.typ == "ids.ActorID":
		s.p("err = f.task((*ids.TaskID)(&%s))\n", at)
	case c.typ == "[]byte":
		s.p("%s = f.copied()\n", at)
	case c.Kind() == protoreflect.BytesKind:
		s.p("copy(%s[:], f.b)\n", at)
	case c.Kind() == protoreflect.StringKind:
		s.p("%s = string(f.b)\n", at)
	case c.Kind() == protoreflect.BoolKind:
		s.p("%s = f.n != 0\n", at)
	case c.Kind() == protoreflect.EnumKind:
		s.p("%s, err = %s(f.n), f.atMost(%d, %q)\n", at, typ, most(c.Enum()), c.Name())
	case in.number(c.typ) == "uint8":
		s.p("%s, err = %s(f.n), f.atMost(255, %q)\n", at, typ, c.Name())
	case c.Kind() == protoreflect.Sint32Kind || c.Kind() == protoreflect.Sint64Kind:
		s.p("%s = %s\n", at, convert(typ, "int64", "f.int()"))
	default:
		s.p("%s = %s\n", at, convert(typ, "uint64", "f.n"))
	}
}
