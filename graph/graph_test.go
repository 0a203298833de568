package graph

import (
	"errors"
	"fmt"
	"testing"
)

func TestMissingKeyIsNamed(t *testing.T) {
	var missing *MissingError
	if _, err := New([]Task{{Key: "a", Deps: []int32{7}}}, nil, nil); !errors.As(err, &missing) || missing.By != "a" {
		t.Fatalf("error %v", err)
	}
	if _, err := New([]Task{{Key: "a"}}, nil, []int32{1}); !errors.As(err, &missing) || missing.By != "" {
		t.Fatalf("error %v", err)
	}
	if _, err := New([]Task{{Key: "a"}}, []int32{0, 1}, nil); err == nil {
		t.Fatal("an order of another length is taken")
	}
}

func TestCycleIsNamedWithItsPath(t *testing.T) {
	_, err := New([]Task{
		{Key: "root"},
		{Key: "a", Deps: []int32{0, 3}},
		{Key: "b", Deps: []int32{1}},
		{Key: "c", Deps: []int32{2}},
		{Key: "top", Deps: []int32{3}},
	}, nil, nil)
	var cycle *CycleError
	if !errors.As(err, &cycle) || fmt.Sprint(cycle.Path) != "[a c b a]" {
		t.Fatalf("error %v", err)
	}
	_, err = New([]Task{{Key: "self", Deps: []int32{0}}}, nil, nil)
	if !errors.As(err, &cycle) || fmt.Sprint(cycle.Path) != "[self self]" {
		t.Fatalf("error %v", err)
	}
}

func TestAMillionTasksInOneChainAreChecked(t *testing.T) {
	const n = 1_000_000
	tasks := make([]Task, n)
	deps := make([]int32, n)
	for i := range tasks {
		tasks[i].Key, tasks[i].Group = "k", "k"
		if i > 0 {
			deps[i] = int32(i - 1)
			tasks[i].Deps = deps[i : i+1]
		}
	}
	g, err := New(tasks, nil, []int32{n - 1})
	if err != nil {
		t.Fatal(err)
	}
	if g.Len() != n || len(g.Dependents(5)) != 1 || g.Deps(5)[0] != 4 {
		t.Fatal("the chain is not one")
	}
	deps[0] = n - 1
	tasks[0].Deps = deps[:1]
	var cycle *CycleError
	if _, err := New(tasks, nil, nil); !errors.As(err, &cycle) || len(cycle.Path) != n+1 || len(cycle.Error()) > 200 {
		t.Fatalf("error %.200v", err)
	}
}

func TestNamesOfGroups(t *testing.T) {
	for key, want := range map[string][2]string{
		"('sum-partial-1a2b3c', 0, 12)":    {"sum-partial-1a2b3c", "sum-partial"},
		"('random_sample-abcdefab', 3)":    {"random_sample-abcdefab", "random_sample"},
		"add-9f8e7d6c5b4a39281706f5e4d3c2": {"add", "add"},
		"x":                                {"x", "x"},
		"":                                 {"", ""},
	} {
		if g := KeyGroup(key); g != want[0] || KeyPrefix(g) != want[1] {
			t.Errorf("%q is of group %q, prefix %q", key, g, KeyPrefix(g))
		}
	}
}

func TestUserPriorityComesBeforeTheOrder(t *testing.T) {
	g, err := New([]Task{{Key: "a"}, {Key: "b", Priority: 5}, {Key: "c", Priority: -1}, {Key: "d", Deps: []int32{0, 0, 1}}}, []int32{1, 2, 0, 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := []int32{g.Rank(0), g.Rank(1), g.Rank(2), g.Rank(3)}; fmt.Sprint(got) != "[1 0 3 2]" {
		t.Errorf("ranks %v", got)
	}
	if len(g.Deps(3)) != 2 {
		t.Errorf("a repeated input counts twice: %v", g.Deps(3))
	}
}
