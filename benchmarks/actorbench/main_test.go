package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"mobula"
)

func TestMain(m *testing.M) {
	if mobula.WorkerMain() {
		return
	}
	if mine, err := socketMain(); mine {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Every row on every system: what it does is checked by itself, its figures are not looked at.
func TestRows(t *testing.T) {
	for _, r := range rows {
		for _, system := range r.systems {
			t.Run(r.name+"/"+system, func(t *testing.T) {
				var out bytes.Buffer
				if err := run(t.Context(), []string{"-quick", r.name, system}, &out); err != nil {
					t.Fatal(err)
				}
				var got figures
				if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) == 0 {
					t.Errorf("%s: %v", out.Bytes(), err)
				}
			})
		}
	}
}

func TestArguments(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !strings.Contains(out.String(), "  "+r.name+" ") {
			t.Errorf("--help says nothing of %s", r.name)
		}
	}
	for _, bad := range [][]string{nil, {"ask"}, {"no-such", mobulas}, {"ask", "akka"}, {"two-ask", protoactor}, {"-colour", "ask", mobulas}} {
		if err := run(t.Context(), bad, &out); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A message that is lost, or an answer that is wrong, fails a row.
func TestWhatIsWrongIsFound(t *testing.T) {
	if err := tellAll(deaf{}, "int", 10, figures{}); err == nil {
		t.Error("messages that have not come were not missed")
	}
	lying := *ints
	lying.num = func(int) int { return 7 }
	for _, system := range []string{protoactor, floors} {
		if err := inRoom(t.Context(), system, &lying, 1, func(r room) error { return r.asker()(1) }); err == nil {
			t.Errorf("%s: a wrong answer was taken", system)
		}
	}
}

type deaf struct{ seatOf }

func (deaf) tell(int) error      { return nil }
func (deaf) heard() (int, error) { return 3, nil }

func TestAParcelHasAHundredBytes(t *testing.T) {
	if n := int(unsafe.Offsetof(parcel{}.M) + unsafe.Sizeof(parcel{}.M)); n != parcels.bytes {
		t.Errorf("it has %d", n)
	}
}
