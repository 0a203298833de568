package mobula

import (
	"errors"
	"strings"
	"testing"

	"mobula/internal/call"
	"mobula/wire"
)

type model struct{}

var (
	pyMean    = PythonFunc1[[]float64, float64]("app.stats", "mean")
	pySplit   = PythonFunc1x2[string, string, string]("app.stats", "Text.split", Retries(1))
	pyModel   = PythonActor1[string, model]("app", "Model", MaxRestarts(2))
	pyPredict = PythonMethod1[model, []float64, float64](pyModel, "predict")
)

// A Python function's handle has the type of a registered function's. What it sends names the language, and nothing is
// registered.
func TestPythonHandlesNameWhatAWorkerImports(t *testing.T) {
	for _, c := range []struct {
		f       *call.Function
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
		plain, _, err := c.f.Resolve(t.Context(), nil)
		if err != nil || c.f.Name() != c.name || c.f.Kind != c.kind || plain.NumReturns != c.returns || wire.Language(plain.Func) != wire.LangPython {
			t.Errorf("%s: %+v, %v", c.name, plain, err)
		}
	}
	split, _, err := pySplit.fn.Resolve(t.Context(), nil)
	model, _, err2 := pyModel.fn.Resolve(t.Context(), nil)
	if err != nil || err2 != nil || split.MaxRetries != 1 || model.MaxRestarts != 2 {
		t.Error("the options of a handle are not its calls'")
	}
}

func TestInvalidPythonNamesFail(t *testing.T) {
	_, ctx, _ := startFake(t)
	for _, f := range []Func0[int]{PythonFunc0[int]("", "f"), PythonFunc0[int]("a", ""), PythonFunc0[int]("a b", "f"), PythonFunc0[int]("a", "f:00"), PythonFunc0[int]("a.", "f")} {
		if _, err := f.Go(ctx).Get(ctx); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "Python function") {
			t.Errorf("%s: %v", f.fn.Name(), err)
		}
	}
	bad := PythonActor0[model]("a-b", "C")
	if _, _, err := PythonMethod0[model, int](bad, "m").fn.Resolve(ctx, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("a method of no class: %v", err)
	}
	if _, _, err := PythonMethod0[model, int](pyModel, "a.b").fn.Resolve(ctx, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("a method with a dot: %v", err)
	}
}
