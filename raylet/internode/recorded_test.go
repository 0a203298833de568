package internode

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

var update = flag.Bool("update", false, "record this version's payloads in testdata")

// recorded has a payload of each message a line: which message it is, the bytes, and what they say by the schema, as JSON. It is written once, when the version
// is made (go test ./raylet/internode -run Recorded -update). Every later build that claims to understand the version must read it, and write the same.
func recorded(version int) string { return fmt.Sprintf("testdata/v%d.txt", version) }

func TestRecordedPayloads(t *testing.T) {
	want := make(map[string]func(source) Msg)
	eachMessage(t, func(t *testing.T, draw func(source) Msg) { want[t.Name()[strings.Index(t.Name(), "/")+1:]] = draw })
	if *update {
		record(t, want)
	}
	for version := MinVersion; version <= Version; version++ {
		data, err := os.ReadFile(recorded(version))
		if err != nil {
			t.Fatal(err)
		}
		missing := slices.Sorted(maps.Keys(want))
		for line := range strings.Lines(string(data)) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			raw, text, _ := strings.Cut(rest, " ")
			t.Run(fmt.Sprintf("v%d/%s", version, name), func(t *testing.T) {
				missing = slices.DeleteFunc(missing, func(n string) bool { return n == name })
				payload, err := hex.DecodeString(raw)
				if err != nil {
					t.Fatal(err)
				}
				msgs, err := decode(payload)
				if err != nil || len(msgs) != 1 {
					t.Fatalf("it reads as %+v, %v", msgs, err)
				}
				if again := encode(t, msgs...); !bytes.Equal(again, payload) {
					t.Errorf("this build writes\n%x\nit was recorded as\n%x", again, payload)
				}
				d, err := schema()
				if err != nil {
					t.Fatal(err)
				}
				said := dynamicpb.NewMessage(d)
				if err := protojson.Unmarshal([]byte(text), said); err != nil {
					t.Fatal(err)
				}
				if got := bySchema(t, payload); !proto.Equal(got, said) {
					t.Errorf("by the schema it says\n%v\nit was recorded as\n%v", got, said)
				}
			})
		}
		if version == Version && len(missing) > 0 {
			t.Errorf("version %d has no record of %q", version, missing)
		}
	}
}

func record(t *testing.T, want map[string]func(source) Msg) {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(want)) {
		payload := fullest(t, want[name])
		text, err := protojson.Marshal(bySchema(t, payload))
		if err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil { // protojson's own spaces vary by build
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %x %s\n", name, payload, compact.Bytes())
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recorded(Version), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fullest is the longest payload of a message that is still handy.
func fullest(t *testing.T, draw func(source) Msg) (best []byte) {
	for seed := range uint64(300) {
		if payload := encode(t, draw(seeded(seed))); len(payload) > len(best) && len(payload) < 800 {
			best = payload
		}
	}
	return best
}
