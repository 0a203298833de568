// Package chaos injects faults in tests: a Plan is a list of rules, each with a place and the fault to make there.
//
//	plan := chaos.New(chaos.Seed(),
//		chaos.Rule{At: chaos.After("bank/account.Book"), Nth: 3, Do: chaos.Crash()},
//		chaos.Rule{At: chaos.Message("Done"), Chance: 0.1, Do: chaos.DelayUpTo(20 * time.Millisecond)},
//	)
//	c := mobulatest.Start(t, mobulatest.WithFaults(plan), mobula.WithProcesses())
//
// Occurrences are counted over all processes and all their lives, from the plan's beginning; the plan is in the test's own process, and
// others ask it. What happens at an occurrence depends on the seed, the rule's place in the list and the occurrence's number, never on
// time: the same seed decides the same. Which task is the nth may differ from run to run, as goroutines and processes do.
//
// Instead of sleeping, a test waits for a place in its program: Point marks one, Plan.Hold stops whoever reaches it, Plan.Reached waits until somebody
// has, Plan.Release lets them go on. Without a plan a Point costs one atomic load.
//
// Experimental: faults, and what takes them in packages mobula and mobulatest, may change in any release.
//
// docs/guide/testing-faults.md shows it on a bank. docs/decisions/0015 says what each fault is, and why some cannot be asked for.
//
// # What keeps it out of production
//
// A node takes a plan only from the program that starts it, by an option: no configuration file, environment variable or client can give
// it one. Workers get it from their node.
package chaos
