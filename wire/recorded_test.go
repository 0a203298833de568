package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

var update = flag.Bool("update", false, "record this version's frames in testdata")

// recorded is where the frames of a protocol version are kept, a file a message and
// beside it what it says, as JSON. They are written once, when the version is made
// (go test ./wire -run Recorded -update), and every later build that claims to
// understand the version must read them.
func recorded(version int, k Kind, ext string) string {
	return filepath.Join("testdata", fmt.Sprintf("v%d", version), k.String()+ext)
}

func TestRecordedFrames(t *testing.T) {
	if *update {
		record(t)
	}
	for version := MinVersion; version <= Version; version++ {
		eachKind(t, func(t *testing.T, k Kind) {
			if version < 7 && k >= KindOpenChannel { // what goes on channels has a version of its own, the first one
				return
			}
			data, err := os.ReadFile(recorded(version, k, ".frame"))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(recorded(version, k, ".json"))
			if err != nil {
				t.Fatal(err)
			}
			want := newPB(t, k)
			if err := protojson.Unmarshal(text, want.Interface()); err != nil {
				t.Fatal(err)
			}
			msgs, err := receive(data, 1<<20)
			if err != nil || len(msgs) != 1 || msgs[0].Kind() != k {
				t.Fatalf("the frame reads as %v, %v", msgs, err)
			}
			again := rawFrame(t, msgs[0])
			if !bytes.Equal(again, data) {
				t.Errorf("this build encodes the message as\n%x\nit was recorded as\n%x", again, data)
			}
			got := newPB(t, k)
			toPB(t, reflect.ValueOf(msgs[0]).Elem(), got)
			if !proto.Equal(got.Interface(), want.Interface()) {
				t.Errorf("the frame reads as\n%v\nit was recorded as\n%v", got.Interface(), want.Interface())
			}
		})
	}
}

func record(t *testing.T) {
	if err := os.MkdirAll(filepath.Dir(recorded(Version, KindHello, "")), 0o755); err != nil {
		t.Fatal(err)
	}
	for k := Kind(1); k < kindEnd; k++ {
		m := fullest(k)
		p := newPB(t, k)
		toPB(t, reflect.ValueOf(m).Elem(), p)
		text, err := protojson.Marshal(p.Interface())
		if err != nil {
			t.Fatal(err)
		}
		var lines bytes.Buffer
		if err := json.Indent(&lines, text, "", "  "); err != nil { // protojson's own spaces vary by build
			t.Fatal(err)
		}
		lines.WriteByte('\n')
		if err := os.WriteFile(recorded(Version, k, ".json"), lines.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(recorded(Version, k, ".frame"), rawFrame(t, m), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fullest is the drawn message of a kind with the most fields set that is still handy.
func fullest(k Kind) Msg {
	var best Msg
	most := -1
	for seed := range uint64(1000) {
		m := drawMsg(seeded(seed), k)
		if n := fieldsSet(reflect.ValueOf(m)); n > most && len(Append(nil, m)) < 3000 {
			best, most = m, n
		}
	}
	return best
}

func fieldsSet(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n = 1 + fieldsSet(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += fieldsSet(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				n += fieldsSet(v.Index(i))
			}
		}
		n += min(v.Len(), 1)
	default:
		if !v.IsZero() {
			n = 1
		}
	}
	return n
}
