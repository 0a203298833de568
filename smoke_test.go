package mobula_test

import (
	"context"
	"testing"
	"time"

	"mobula"
)

var smokeAdd = mobula.Register2("smoke/add", func(ctx context.Context, a, b float64) (float64, error) { return a + b, nil })

func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	t0 := time.Now()
	c, err := mobula.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("start", time.Since(t0))
	ctx2 := c.Context(context.Background())
	t0 = time.Now()
	x := smokeAdd.Go(ctx2, mobula.V(1.0), mobula.V(2.0))
	y := smokeAdd.Go(ctx2, x, mobula.V(3.0))
	v, err := y.Get(ctx2)
	t.Log(v, err, time.Since(t0))
	for range 3 {
		t0 = time.Now()
		const n = 200000
		refs := make([]mobula.Ref[float64], n)
		for i := range refs {
			refs[i] = smokeAdd.Go(ctx2, mobula.V(1.0), mobula.V(2.0))
		}
		sub := time.Since(t0)
		vs, err := mobula.GetAll(ctx2, refs)
		el := time.Since(t0)
		t.Log(len(vs), err, el, sub, float64(n)/el.Seconds())
		t0 = time.Now()
		for range 10000 {
			if _, err := smokeAdd.Go(ctx2, mobula.V(1.0), mobula.V(2.0)).Get(ctx2); err != nil {
				t.Fatal(err)
			}
		}
		t.Log("sync", time.Since(t0)/10000)
	}
	t0 = time.Now()
	t.Log(c.Close(ctx), time.Since(t0))
}
