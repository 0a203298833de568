package trust

import (
	"errors"
	"testing"

	"mobula/internal/errs"
)

// A refusal means the same at the other end of a connection.
func TestARefusalThatIsTold(t *testing.T) {
	for name, why := range reasons {
		var r *Refused
		if err := Refuse(why, "%s it is", name); !errors.As(err, &r) || r.Reason() != name {
			t.Fatalf("%v has the reason %q", why, r.Reason())
		}
		told := Told(r.Reason(), r.Text)
		if !errors.Is(told, why) || !errors.Is(told, errs.ErrPermission) || told.Error() != name+" it is" {
			t.Errorf("%v is told as %v", why, told)
		}
		for other, not := range reasons {
			if other != name && errors.Is(told, not) {
				t.Errorf("%v is told as %v too", why, not)
			}
		}
	}
	if err := Told("a later reason", "because"); !errors.Is(err, errs.ErrPermission) {
		t.Errorf("a reason that nobody knows yet: %v", err)
	}
}
