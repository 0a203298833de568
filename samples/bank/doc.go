// Command bank moves money between accounts, which are actors with a journal each. A transfer is a task that debits one and credits another; it may
// run again, and an account makes each entry once. Its test is that of docs/guide/testing-faults.md: it crashes, delays and kills every part, and
// no money is lost.
package main
