package internode

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/sched"
	"mobula/wire"
)

// message is one with these fields.
func message(kind Kind, fields ...[]byte) []byte { return inside(int(kind), fields...) }

// inside is a field with a message of these fields.
func inside(number int, fields ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, protowire.Number(number), protowire.BytesType), bytes.Join(fields, nil))
}

func TestMalformedPayloads(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload []byte
		kind    error
		words   []string
	}{
		{"no kind", []byte{0x02, 0}, errs.ErrProtocol, []string{"no message starts at byte 0 of 2"}},
		{"a number for a message", []byte{byte(KindToSched) << 3, 1}, errs.ErrProtocol, []string{"no message starts at byte 0"}},
		{"half a kind", append(message(KindCloseJob), 0x80), errs.ErrProtocol, []string{"no message starts at byte 2 of 3"}},
		{"half a length", []byte{byte(KindCloseJob)<<3 | 2, 0x80}, errs.ErrProtocol, []string{"kind 2 at byte 1 of 2"}},
		{"too long", []byte{byte(KindCloseJob)<<3 | 2, 9, 1}, errs.ErrProtocol, []string{"announces 9 bytes, 1 are left"}},
		{"later kind", inside(int(kindEnd)), errs.ErrVersion, []string{fmt.Sprintf("kind %d at byte 0 of 3", kindEnd), "agreed on version 7", fmt.Sprintf("speaks %d to %d", MinVersion, Version)}},
		{"much later kind", []byte{0x82, 0x80, 0x01, 0}, errs.ErrVersion, []string{"kind 2048"}},
		{"nothing inside", message(KindToSched, []byte{1 << 3, 5}), errs.ErrVersion, []string{"ToSched at byte 0 of 4", "no message inside", fmt.Sprintf("version %d", Version)}},
		{"something later inside", message(KindFromStore, inside(15)), errs.ErrVersion, []string{"FromStore", "no message inside"}},
		{"later client message", message(KindToClients, inside(2, inside(2, inside(120)))), errs.ErrVersion, []string{"ToClients", "kind 120 is unknown"}},
		{"half a field", message(KindClientGone, []byte{1 << 3}), errs.ErrProtocol, []string{"ClientGone at byte 0 of 3", "EOF"}},
		{"field 0", message(KindClientGone, []byte{0, 1}), errs.ErrProtocol, []string{"ClientGone", "invalid field number"}},
		{"a group", message(KindClientGone, []byte{5<<3 | 3, 5<<3 | 4}), errs.ErrProtocol, []string{"wire type 3"}},
		{"short id", message(KindToStore, inside(9, inside(2, inside(1, []byte{1, 2, 3})))), errs.ErrProtocol, []string{"ToStore", "task's id of 3 bytes"}},
		{"task's id for an object's", message(KindToStore, inside(11, inside(1, make([]byte, 17)))), errs.ErrProtocol, []string{"object's id of 17 bytes"}},
		{"short hash", message(KindFindBlob, inside(3, make([]byte, 31))), errs.ErrProtocol, []string{"field 3 has 31 bytes, want 32"}},
		{"later role", message(KindClientJoined, []byte{3 << 3, 4}), errs.ErrProtocol, []string{"ClientJoined", "role 4 is unknown"}},
		{"later kind of task", message(KindToSched, inside(2, []byte{3 << 3, 3})), errs.ErrProtocol, []string{"kind 3 is unknown"}},
		{"later state", message(KindReport, inside(1, []byte{3 << 3, 3})), errs.ErrProtocol, []string{"state 3 is unknown"}},
		{"bad list of homes", message(KindToStore, inside(12, inside(5, []byte{1, 0x80}))), errs.ErrProtocol, []string{"ToStore", "EOF"}},
		{"bad label", message(KindReport, inside(1, inside(6, []byte{1 << 3}))), errs.ErrProtocol, []string{"Report", "EOF"}},
		{"bad error", message(KindCloseJob, inside(2, inside(2, []byte{0xff}))), errs.ErrProtocol, []string{"CloseJob", "not UTF-8"}},
		{"nothing for an owner", message(KindToPeer, []byte{1 << 3, 5}), errs.ErrVersion, []string{"ToPeer", "no message inside"}},
		{"half an owner's word", message(KindPeerWords, inside(3, []byte{7<<3 | 2, 9})), errs.ErrProtocol, []string{"PeerWords", "announces 9 bytes"}},
		{"bad client message", message(KindFromClients, inside(2, inside(2, inside(7, inside(1, []byte{1, 2}))))), errs.ErrProtocol, []string{"FromClients", "id of 2 bytes"}},
		{"half a client message", message(KindFromClients, inside(2, inside(2, []byte{7<<3 | 2, 9}))), errs.ErrProtocol, []string{"FromClients", "announces 9 bytes"}},
		{"too large", make([]byte, MaxPayload+1), errs.ErrProtocol, []string{fmt.Sprint("the limit is ", MaxPayload)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decoder{Agreed: 7}
			err := d.Decode(c.payload, func(Msg) error { return nil })
			if !errors.Is(err, c.kind) || !errors.Is(err, errs.ErrProtocol) {
				t.Fatalf("got %v, want %v", err, c.kind)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

func TestMessagesBeforeAFaultCount(t *testing.T) {
	good := encode(t, &Report{}, &CloseJob{Job: 3})
	got, err := decode(append(good, inside(int(kindEnd))...))
	if want := []Msg{&Report{}, &CloseJob{Job: 3}}; !errors.Is(err, errs.ErrVersion) || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	stop := errors.New("enough")
	n := 0
	if err := new(Decoder).Decode(good, func(Msg) error { n++; return stop }); err != stop || n != 1 {
		t.Fatalf("stopped after %d with %v", n, err)
	}
}

func TestTruncationIsNeverAnotherMessage(t *testing.T) {
	eachMessage(t, func(t *testing.T, draw func(source) Msg) {
		s := seeded(3)
		for range 10 {
			m := draw(s)
			data := encode(t, m)
			for n := 1; n < min(len(data), 400); n++ {
				if got, err := decode(data[:n]); !errors.Is(err, errs.ErrProtocol) || len(got) > 0 {
					t.Fatalf("%d of %d bytes of %+v read as %+v, %v", n, len(data), m, got, err)
				}
			}
		}
	})
}

func TestWhatCannotBeSent(t *testing.T) {
	before := encode(t, &Report{})
	for _, c := range []struct {
		name string
		msg  Msg
		word string
	}{
		{"nil", nil, "message 2 of 2 is nil"},
		{"nothing inside", &ToSched{Job: 1}, "ToSched: a <nil> does not go"},
		{"of no owner", &ToSched{Msg: sched.Tick{}}, "ToSched: a sched.Tick does not go"},
		{"values", &ToStore{Msg: objectstore.Pack{}}, "ToStore: a objectstore.Pack does not go"},
		{"packed", &FromStore{Msg: objectstore.Packed{}}, "FromStore: a objectstore.Packed does not go"},
		{"of a node", &ToPeer{Msg: owner.Rejoined{}}, "ToPeer: a owner.Rejoined does not go"},
		{"no word", &PeerWords{From: 9, Msgs: []wire.Msg{nil}}, "PeerWords: job 9: a nil message"},
		{"of no client", &ToClients{Items: []ClientMsgs{{Client: 9, Msgs: []wire.Msg{nil}}}}, "ToClients: client 9: a nil message"},
		{"bad value", &FromClients{Items: []ClientMsgs{{Msgs: []wire.Msg{&wire.PutValue{Value: wire.Value{Meta: make([]byte, wire.MaxMeta+1)}}}}}}, "Meta is 4097 bytes"},
		{"too large", &ToStore{Msg: objectstore.SealObject{Meta: make([]byte, MaxPayload)}}, fmt.Sprint("the limit is ", MaxPayload)},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Encoder{Agreed: Version}
			got, err := e.Append(before, &CloseJob{Job: 1}, c.msg)
			if !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), c.word) || !bytes.Equal(got, before) {
				t.Fatalf("got %d bytes and %v, want %q and what there was", len(got), err, c.word)
			}
			if got, err = e.Append(got, &CloseJob{Job: 2}); err != nil || !bytes.Equal(got, encode(t, &Report{}, &CloseJob{Job: 2})) {
				t.Fatalf("the next message is written as %x, %v", got, err)
			}
		})
	}
}

// Fields of a later version of the same messages are skipped.
func TestLaterFieldsAreSkipped(t *testing.T) {
	later := []byte{0xf8, 0x07, 5, 0xf9, 0x07, 1, 2, 3, 4, 5, 6, 7, 8, 0xfa, 0x07, 2, 'h', 'i'} // field 127
	payload := bytes.Join([][]byte{
		message(KindClientGone, []byte{1 << 3, 3}, later, []byte{2 << 3, 4}),
		message(KindToSched, later, inside(3, later, []byte{1 << 3, 9})),
		message(KindFromClients, later, inside(2, later, []byte{1 << 3, 9}, inside(2, inside(22, later)))),
	}, nil)
	got, err := decode(payload)
	want := []Msg{
		&ClientGone{Job: 3, Client: 4}, &ToSched{Msg: sched.Return{Lease: 9}}, &FromClients{Items: []ClientMsgs{{Client: ids.ClientID(9), Msgs: []wire.Msg{&wire.Drain{}}}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
}
