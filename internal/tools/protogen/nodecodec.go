package main

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// byHandBetween are the messages between nodes whose codec is by hand: those that carry batches of the local protocol's messages, as frames.
var byHandBetween = map[string]bool{"ToClients": true, "FromClients": true, "ClientMsgs": true, "PeerWords": true}

// betweenNodes writes the codec of the messages between nodes.
func betweenNodes(f protoreflect.FileDescriptor, in *goTypes) ([]byte, error) {
	all, err := framed(f)
	if err != nil {
		return nil, err
	}
	k := &fieldCodec{in: in, pkg: "internode", schema: f, source: goSource("internode",
		"mobula/internal/ids", "mobula/internal/protofield", "mobula/objectstore", "mobula/raylet/cluster", "mobula/raylet/owner", "mobula/raylet/sched", "mobula/wire")}
	for _, m := range all {
		k.add(m, "internode."+string(m.Name()))
	}
	k.p("\n// body appends the fields of m.\nfunc (e *Encoder) body(b []byte, m Msg) ([]byte, error) {\nswitch m := m.(type) {\n")
	for _, m := range all {
		if byHandBetween[string(m.Name())] {
			k.p("case *%s:\nreturn e.append%[1]s(b, m)\n", m.Name())
		} else {
			k.p("case *%s:\nb = append%[1]s(b, m)\n", m.Name())
		}
	}
	k.p("}\nreturn b, nil\n}\n")
	k.p("\n// read reads a message; nil: its kind is unknown.\nfunc (d *Decoder) read(k Kind, b []byte) (Msg, error) {\nswitch k {\n")
	for _, m := range all {
		of := ""
		if byHandBetween[string(m.Name())] {
			of = "d."
		}
		k.p("case Kind%s:\nm := new(%[1]s)\nreturn m, %sread%[1]s(b, m)\n", m.Name(), of)
	}
	k.p("}\nreturn nil, nil\n}\n")
	if err := k.write(byHandBetween); err != nil {
		return nil, err
	}
	k.closed()
	return k.gofmt()
}

// closed writes what tells whether a message can be sent.
func (k *fieldCodec) closed() {
	k.p("\n// inSchema tells whether what m has inside, if it has one of several messages there, is of the schema.\n")
	k.p("func inSchema(m Msg) (inside any, ok bool) {\nswitch m := m.(type) {\n")
	for _, m := range k.todo {
		c := m.choice()
		if c == nil {
			continue
		}
		var of []string
		for _, c := range m.cols {
			if c.choice {
				of = append(of, c.typ)
			}
		}
		k.p("case *%s:\nswitch m.%s.(type) {\ncase %s:\ndefault:\nreturn m.%[2]s, false\n}\n", m.Name(), c.path, strings.Join(of, ", "))
	}
	k.p("}\nreturn nil, true\n}\n")
}
