package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"mobula/internal/errs"
)

// testToken is a token whose secret is 32 times a byte.
func testToken(b byte) Token {
	t := Token{ID: "id1"}
	copy(t.secret[:], bytes.Repeat([]byte{b}, 32))
	copy(t.Authority[:], bytes.Repeat([]byte{0xa0}, 32))
	return t
}

func TestATokenIsReadAsItWasWritten(t *testing.T) {
	want := testToken(7)
	for _, text := range []string{want.Text(), " " + want.Text() + "\n", "\t" + want.Text() + "\r\n"} {
		if got, err := ParseToken(text); err != nil || got != want {
			t.Errorf("%q is read as %v, %v", text, got, err)
		}
	}
	if !strings.HasPrefix(want.Text(), "mbl1.oKCgoKCg") || len(want.Text()) != 4+1+43+1+3+1+43 {
		t.Errorf("it reads %s", want.Text())
	}
}

// Whatever prints a token, or the error of one, leaves the secret out.
func TestASecretIsNotPrinted(t *testing.T) {
	tok := testToken(7)
	_, secret, _ := strings.Cut(tok.Text(), ".id1.")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("join", "token", tok)
	slog.New(slog.NewTextHandler(&log, nil)).Info("join", "token", tok, "in", struct{ T Token }{tok})
	asJSON, err := json.Marshal(tok)
	if err != nil {
		t.Fatal(err)
	}
	_, cut := ParseToken(tok.Text()[:len(tok.Text())-1])
	_, other := ParseToken("mbl2." + secret)
	for _, s := range []string{fmt.Sprint(tok), fmt.Sprintf("%+v %#v %s %q %d %x", tok, tok, tok, tok, tok, tok), string(asJSON), log.String(), cut.Error(), other.Error()} {
		for _, form := range []string{secret[:20], "7, 7, 7", "7 7 7", "070707", "0x7, 0x7"} {
			if strings.Contains(s, form) {
				t.Errorf("%q has the secret", s)
			}
		}
	}
}

func TestWhatIsNoToken(t *testing.T) {
	good := testToken(7).Text()
	part := strings.Split(good, ".")
	join := func(p ...string) string { return strings.Join(p, ".") }
	for text, want := range map[string]string{
		"":                                   "not complete",
		"mbl1":                               "not complete",
		"mbl1...":                            "no id",
		good[:len(good)-1]:                   "no secret",
		good + "A":                           "no secret",
		good + ".":                           "not complete",
		join("mbl2", part[1], part[2], "x"):  "another release",
		join("K10", part[1], part[2], "x"):   "not complete",
		join("mbl1", "x", part[2], part[3]):  "authority",
		join("mbl1", part[1], "", part[3]):   "no id",
		join("mbl1", part[1], "ID", part[3]): "no id",
		join("mbl1", part[1], strings.Repeat("a", 65), part[3]): "no id",
		join("mbl1", part[1], "a b", part[3]):                   "no id",
		good[:len(good)-1] + "+":                                "no secret",
		good[:len(good)-1] + "d":                                "no secret", // bits behind the last byte
		good[:len(good)-4] + "\n" + good[len(good)-3:]:          "no secret",
	} {
		if got, err := ParseToken(text); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(testToken(7).Text())
	f.Add("mbl1.a.b.c")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseToken(s)
		if err == nil && got.Text() != strings.TrimSpace(s) {
			t.Errorf("%q is read as %q", s, got.Text())
		}
		if err != nil && !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v", s, err)
		}
	})
}
