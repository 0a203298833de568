package mobula

import (
	"errors"
	"strings"
	"testing"

	"mobula/wire"
)

type model struct{}

var (
	pyMean    = PythonFunc1[[]float64, float64]("app.stats", "mean")
	pySplit   = PythonFunc1x2[string, string, string]("app.stats", "Text.split", Retries(1))
	pyModel   = PythonActor1[string, model]("app", "Model", MaxRestarts(2))
	pyPredict = PythonMethod1[model, []float64, float64](pyModel, "predict")
)

// A Python function's handle is of the type of a registered one's; what it sends names the language, and nothing is registered.
func TestPythonHandlesNameWhatAWorkerImports(t *testing.T) {
	for _, c := range []struct {
		f       *function
		name    string
		kind    wire.TaskKind
		returns int32
	}{
		{pyMean.fn, "py:app.stats.mean", wire.TaskNormal, 1},
		{pySplit.fn, "py:app.stats.Text.split", wire.TaskNormal, 2},
		{pyModel.fn, "py:app.Model", wire.TaskActorCreate, 1},
		{pyPredict.fn, "py:app.Model.predict", wire.TaskActorCall, 1},
		{PythonStream0[int]("app", "count").fn, "py:app.count", wire.TaskNormal, wire.Streaming},
		{PythonFuncN1[int, int]("app", "range").fn, "py:app.range", wire.TaskNormal, 1},
		{PythonStreamMethod0[model, int](pyModel, "items").fn, "py:app.Model.items", wire.TaskActorCall, wire.Streaming},
	} {
		if c.f.err != nil || c.f.name != c.name || c.f.kind != c.kind || c.f.plain.NumReturns != c.returns || wire.Language(c.f.plain.Func) != wire.LangPython {
			t.Errorf("%s: %+v, %v", c.name, c.f.plain, c.f.err)
		}
	}
	if pySplit.fn.plain.MaxRetries != 1 || pyModel.fn.plain.MaxRestarts != 2 {
		t.Error("the options of a handle are not its calls'")
	}
}

func TestNamesThatAreNonePythonHas(t *testing.T) {
	_, ctx, _ := startFake(t)
	for _, f := range []Func0[int]{PythonFunc0[int]("", "f"), PythonFunc0[int]("a", ""), PythonFunc0[int]("a b", "f"), PythonFunc0[int]("a", "f:00"), PythonFunc0[int]("a.", "f")} {
		if _, err := f.Go(ctx).Get(ctx); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "Python function") {
			t.Errorf("%s: %v", f.fn.name, err)
		}
	}
	bad := PythonActor0[model]("a-b", "C")
	if f := PythonMethod0[model, int](bad, "m").fn; !errors.Is(f.err, ErrInvalid) {
		t.Errorf("a method of no class: %v", f.err)
	}
	if f := PythonMethod0[model, int](pyModel, "a.b").fn; !errors.Is(f.err, ErrInvalid) {
		t.Errorf("a method with a dot: %v", f.err)
	}
}
