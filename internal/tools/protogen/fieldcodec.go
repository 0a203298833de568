package main

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// given is the number, in the log alone, that tells whether the options of a task name resources; see record.proto.
const given = 20

// A fieldCodec is a codec made of the functions of internal/protofield, while it is written: that of the log, or that of the messages between nodes.
type fieldCodec struct {
	*source
	in     *goTypes
	pkg    string // its Go package
	schema protoreflect.FileDescriptor
	todo   []*coded
	log    bool // fields may lie in a struct inside, and options say whether they name resources
}

// A coded message is one that the codec has, by itself or inside another.
type coded struct {
	protoreflect.MessageDescriptor
	typ     string // its Go struct, qualified
	options bool   // it is a task's options as the log has them
	cols    []column
}

// num is the number of a field.
func (m *coded) num(c column) int {
	if n := c.num(); !m.options || n < given {
		return n
	}
	return c.num() + 1
}

// choice is the field of the struct, an interface, that has one of several messages; nil: there is none.
func (m *coded) choice() *column {
	for i := range m.cols {
		if m.cols[i].choice {
			return &m.cols[i]
		}
	}
	return nil
}

// name is what functions for a message are called by.
func name(m protoreflect.MessageDescriptor) string {
	if of, ok := m.Parent().(protoreflect.MessageDescriptor); ok {
		return string(of.Name() + m.Name())
	}
	return string(m.Name())
}

// add has a message written, once, with all that are inside it. Errors and frames are by hand.
func (k *fieldCodec) add(m protoreflect.MessageDescriptor, typ string) {
	if typ == "errs.Error" || typ == "wire.Msg" || slices.ContainsFunc(k.todo, func(t *coded) bool { return t.typ == typ }) {
		return
	}
	k.todo = append(k.todo, &coded{MessageDescriptor: m, typ: typ, options: k.log && typ == "wire.TaskOptions"})
}

// write writes the functions for all messages that were added, but of those by hand.
func (k *fieldCodec) write(byHand map[string]bool) error {
	for i := 0; i < len(k.todo); i++ { // which grows
		m := k.todo[i]
		var err error
		if m.cols, err = k.in.columns(m, m.typ, !k.log || m.ParentFile() != k.schema); err != nil {
			return err
		}
		for _, c := range m.cols {
			if c.Message() != nil && !c.IsMap() {
				k.add(c.Message(), strings.TrimLeft(c.typ, "[]*"))
			}
		}
		if !byHand[string(m.Name())] {
			k.appender(m)
			k.reader(m)
		}
	}
	return nil
}

// local is a type as the codec's package writes it.
func (k *fieldCodec) local(typ string) string { return strings.Replace(typ, k.pkg+".", "", 1) }

// places says where the fields of a message are while it is written: the parameters, and the place of a path. Of a record
// with other structs inside those come one by one, so that nobody copies them to write them.
func (k *fieldCodec) places(m *coded) (params string, at func(path string) string) {
	nested := slices.ContainsFunc(m.cols, func(c column) bool {
		return strings.Contains(c.path, ".") || strings.HasPrefix(c.typ, "wire.") && c.Message() != nil
	})
	if !k.log || !nested || !strings.HasPrefix(m.typ, k.pkg+".") {
		return "r *" + k.local(m.typ), func(path string) string { return "r." + path }
	}
	var list []string
	place := make(map[string]string) // of a path's first step
	for _, f := range k.in.structs[m.typ] {
		typ := f.typ
		if k.in.structs[typ] != nil {
			typ = "*" + typ
		}
		if f.embedded {
			name := k.local(f.typ)
			name = strings.ToLower(name[:1]) + name[1:]
			for _, inner := range k.in.structs[f.typ] {
				place[inner.name] = name + "." + inner.name
			}
			list = append(list, name+" "+k.local(typ))
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

func (k *fieldCodec) appender(m *coded) {
	params, at := k.places(m)
	k.p("\nfunc append%s(b []byte, %s) []byte {\n", name(m), params)
	for _, c := range m.cols {
		if c.Message() != nil && !c.IsMap() && c.typ != "*errs.Error" {
			k.p("var at int\n")
			break
		}
	}
	told := !m.options
	for _, c := range m.cols {
		if !told && m.num(c) > given {
			told = true
			k.p("b = protofield.PutBool(b, %d, r.Resources != nil)\n", given)
		}
		of := c.ContainingOneof()
		switch {
		case of == nil:
			k.put(c, m.num(c), at(c.path))
		case c.choice && of.Fields().Get(0) == c.FieldDescriptor:
			k.p("switch m := %s.(type) {\n", at(c.path))
			for _, c := range m.cols {
				if c.choice {
					k.p("case %s:\n", c.typ)
					k.nest(c, m.num(c), "&m")
				}
			}
			k.p("}\n")
		case c.choice:
		case of.Fields().Get(0) == c.FieldDescriptor:
			k.p("if %s != 0 {\n", at(c.path))
			k.put(c, m.num(c), at(c.path))
			k.p("} else {\n")
		default:
			k.nest(c, m.num(c), at(c.path))
			k.p("}\n")
		}
	}
	k.p("return b\n}\n")
}

// nest writes the statements that append the message at x, a pointer.
func (k *fieldCodec) nest(c column, n int, x string) {
	k.p("b, at = protofield.Open(b, %d)\nb = append%s(b, %s)\nb = protofield.Shut(b, at)\n", n, name(c.Message()), x)
}

// put writes the statements that append the field that is there.
func (k *fieldCodec) put(c column, n int, at string) {
	switch {
	case c.typ == "*errs.Error":
		k.p("b = appendError(b, %d, %s)\n", n, at)
	case c.IsMap() && c.typ == "map[string]string" && c.MapKey().Kind() == protoreflect.StringKind && c.MapValue().Kind() == protoreflect.StringKind:
		k.p("b = protofield.PutMap(b, %d, %s)\n", n, at)
	case c.IsMap():
		k.fail(noCodec(c))
	case c.Message() != nil && c.IsList():
		k.p("for i := range %s {\n", at)
		k.nest(c, n, "&"+at+"[i]")
		k.p("}\n")
	case c.Message() != nil && strings.HasPrefix(c.typ, "*"):
		k.p("if %s != nil {\n", at)
		k.nest(c, n, at)
		k.p("}\n")
	case c.Message() != nil:
		k.nest(c, n, pointer(at))
	case c.IsList() && c.Kind() == protoreflect.StringKind && c.typ == "[]string":
		k.p("b = protofield.PutStrings(b, %d, %s)\n", n, at)
	case c.IsList() && c.Kind() == protoreflect.BytesKind && c.typ == "[]ids.ObjectID":
		k.p("for i := range %s {\nb = protofield.PutObject(b, %d, &%[1]s[i])\n}\n", at, n)
	case c.IsList() && c.Kind() == protoreflect.Uint32Kind && k.in.number(strings.TrimPrefix(c.typ, "[]")) == "uint32":
		k.p("b = protofield.PutNumbers(b, %d, %s)\n", n, at)
	case c.typ == "ids.ObjectID":
		k.p("if !%s.IsZero() {\nb = protofield.PutObject(b, %d, %s)\n}\n", at, n, pointer(at))
	case c.typ == "ids.TaskID":
		k.p("b = protofield.PutTask(b, %d, &%s)\n", n, at)
	case c.typ == "ids.ActorID":
		k.p("b = protofield.PutTask(b, %d, (*ids.TaskID)(&%s))\n", n, at)
	case c.Kind() == protoreflect.BytesKind && c.typ == "[]byte":
		k.p("b = protofield.PutBytes(b, %d, %s)\n", n, at)
	case c.Kind() == protoreflect.BytesKind && strings.HasPrefix(c.typ, "[") && !c.IsList():
		whole, typ := at, c.typ
		if strings.Contains(c.path, ".") { // it is there with what is around it
			whole, typ = at[:strings.LastIndexByte(at, '.')], k.local(c.in)
		}
		k.p("if %s != (%s{}) {\nb = protofield.PutBytes(b, %d, %s[:])\n}\n", whole, typ, n, at)
	case c.Kind() == protoreflect.StringKind && c.typ == "string":
		k.p("b = protofield.PutString(b, %d, %s)\n", n, at)
	case c.Kind() == protoreflect.BoolKind && c.typ == "bool":
		k.p("b = protofield.PutBool(b, %d, %s)\n", n, at)
	case c.IsList() || !strings.Contains(k.in.number(c.typ), "int"):
		k.fail(noCodec(c))
	case c.Kind() == protoreflect.Sint32Kind || c.Kind() == protoreflect.Sint64Kind:
		k.p("b = protofield.PutInt(b, %d, %s)\n", n, convert("int64", c.typ, at))
	case c.Kind() == protoreflect.Uint32Kind || c.Kind() == protoreflect.Uint64Kind || c.Kind() == protoreflect.EnumKind:
		k.p("b = protofield.PutUint(b, %d, %s)\n", n, convert("uint64", c.typ, at))
	case c.Kind() == protoreflect.Fixed64Kind:
		k.p("b = protofield.PutFixed64(b, %d, %s)\n", n, convert("uint64", c.typ, at))
	default:
		k.fail(noCodec(c))
	}
}

// pointer writes a pointer to the struct at a place: to a field, or what a parameter is.
func pointer(at string) string {
	if strings.Contains(at, ".") {
		return "&" + at
	}
	return at
}

func (k *fieldCodec) reader(m *coded) {
	result := "return "
	if m.choice() != nil {
		result = "err := "
	}
	k.p("\nfunc read%s(b []byte, r *%s) error {\n%sprotofield.Each(b, func(f protofield.Field) (err error) {\nswitch f.Num {\n",
		name(m), k.local(m.typ), result)
	told := !m.options
	for _, c := range m.cols {
		if !told && m.num(c) > given {
			told = true
			k.p("case %d:\nif f.N != 0 && r.Resources == nil {\nr.Resources = []wire.Resource{}\n}\n", given)
		}
		k.p("case %d:\n", m.num(c))
		k.take(c)
	}
	k.p("}\nreturn err\n})\n")
	if c := m.choice(); c != nil {
		k.p("if err == nil && r.%s == nil {\nerr = errNothingInside\n}\nreturn err\n", c.path)
	}
	k.p("}\n")
}

// take writes the statements that read a field of r.
func (k *fieldCodec) take(c column) {
	at, typ := "r."+c.path, k.local(c.typ)
	switch {
	case c.typ == "*errs.Error":
		k.p("%s, err = readError(f.B)\n", at)
	case c.IsMap():
		k.p("err = f.Entry(&%s)\n", at)
	case c.choice:
		k.p("var m %s\nerr = read%s(f.B, &m)\n%s = m\n", typ, name(c.Message()), at)
	case c.Message() != nil && c.IsList():
		k.p("err = read%s(f.B, protofield.More(f, &%s))\n", name(c.Message()), at)
	case c.Message() != nil && strings.HasPrefix(typ, "*"):
		k.p("%s = new(%s)\nerr = read%s(f.B, %[1]s)\n", at, typ[1:], name(c.Message()))
	case c.Message() != nil:
		k.p("err = read%s(f.B, &%s)\n", name(c.Message()), at)
	case c.typ == "[]string":
		k.p("*protofield.More(f, &%s) = string(f.B)\n", at)
	case c.typ == "[]ids.ObjectID":
		k.p("err = f.Object(protofield.More(f, &%s))\n", at)
	case c.IsList():
		k.p("%s, err = protofield.Numbers[%s](f)\n", at, strings.TrimPrefix(typ, "[]"))
	case c.typ == "ids.ObjectID":
		k.p("err = f.Object(&%s)\n", at)
	case c.typ == "ids.TaskID":
		k.p("err = f.Task(&%s)\n", at)
	case c.typ == "ids.ActorID":
		k.p("err = f.Task((*ids.TaskID)(&%s))\n", at)
	case c.typ == "[]byte":
		k.p("%s = f.Copied()\n", at)
	case c.Kind() == protoreflect.BytesKind:
		k.p("err = f.Into(%s[:])\n", at)
	case c.Kind() == protoreflect.StringKind:
		k.p("%s = string(f.B)\n", at)
	case c.Kind() == protoreflect.BoolKind:
		k.p("%s = f.N != 0\n", at)
	case c.Kind() == protoreflect.EnumKind:
		k.p("%s, err = %s(f.N), f.AtMost(%d, %q)\n", at, typ, most(c.Enum()), c.Name())
	case k.in.number(c.typ) == "uint8":
		k.p("%s, err = %s(f.N), f.AtMost(255, %q)\n", at, typ, c.Name())
	case c.Kind() == protoreflect.Sint32Kind || c.Kind() == protoreflect.Sint64Kind:
		k.p("%s = %s\n", at, convert(typ, "int64", "f.Int()"))
	default:
		k.p("%s = %s\n", at, convert(typ, "uint64", "f.N"))
	}
}
