package restarts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/testkit"
)

// The bank: accounts are named, detached actors that write each entry to a journal before they answer, and know by its number one
// that they have made. Callers in processes of their own move money between them, and ask again until they are answered, whatever
// dies meanwhile.

// account is one; its state is its journal.
type account struct {
	path    string
	balance int
	made    map[string]bool
}

// standing is what an account says of itself.
type standing struct{ Balance, Entries int }

const opening = 100 // of each account

var (
	accountType = mobula.RegisterActor1("e2e/account", openAccount, mobula.MaxRestarts(-1), mobula.Resources{CPU: mobula.NoCPU})
	accountBook = mobula.RegisterMethod2(accountType, "Book", (*account).Book)
	accountTell = mobula.RegisterMethod0(accountType, "Tell", (*account).Tell)
)

func openAccount(_ context.Context, path string) (*account, error) {
	a := &account{path: path, balance: opening, made: make(map[string]bool)}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		var entry string
		var by int
		if _, err := fmt.Sscanf(line, "%s %d\n", &entry, &by); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		a.apply(entry, by)
	}
	return a, nil
}

func (a *account) apply(entry string, by int) {
	if !a.made[entry] {
		a.made[entry] = true
		a.balance += by
	}
}

// Book makes an entry, once.
func (a *account) Book(_ context.Context, entry string, by int) (standing, error) {
	if !a.made[entry] {
		f, err := os.OpenFile(a.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return standing{}, err
		}
		_, err = fmt.Fprintf(f, "%s %d\n", entry, by)
		if err = errors.Join(err, f.Close()); err != nil {
			return standing{}, err
		}
	}
	a.apply(entry, by)
	return standing{a.balance, len(a.made)}, nil
}

// Tell gives how the account stands.
func (a *account) Tell(context.Context) (standing, error) {
	return standing{a.balance, len(a.made)}, nil
}

// bankEnv makes this test binary one of the bank's processes.
const bankEnv = "MOBULA_E2E_BANK"

// branch is what one of the bank's processes is told.
type branch struct {
	Address, Dir string
	Accounts     int
	Number       int // 0: it opens the accounts
}

// teller is one, with its connection.
type teller struct {
	branch

	mu    sync.Mutex
	c     *mobula.Cluster                  // guarded by mu; nil: to be made
	refs  map[int]mobula.ActorRef[account] // guarded by mu: of the connection
	doing sync.RWMutex                     // held by who moves money; for writing: nobody does
	moves *os.File                         // what was answered
}

func (b branch) journal(i int) string { return filepath.Join(b.Dir, fmt.Sprintf("account-%04d", i)) }
func (b branch) done(n int) string    { return filepath.Join(b.Dir, fmt.Sprintf("teller-%d", n)) }
func accountName(i int) string        { return fmt.Sprintf("account-%04d", i) }

// bankMain runs one of the bank's processes, if this is to be one.
func bankMain() bool {
	text := os.Getenv(bankEnv)
	if text == "" {
		return false
	}
	_ = os.Unsetenv(bankEnv)
	b := &teller{refs: make(map[int]mobula.ActorRef[account])}
	if err := json.Unmarshal([]byte(text), &b.branch); err != nil {
		harness.Fail(err)
	}
	var err error
	if b.Number == 0 {
		err = b.open()
	} else {
		err = b.work()
	}
	if err != nil {
		harness.Fail(err)
	}
	if b.c != nil {
		_ = b.c.Close(context.Background()) // its node may be gone
	}
	return true
}

// open opens the accounts, and leaves.
func (b *teller) open() error {
	c, err := mobula.Connect(context.Background(), b.Address, mobula.ConnectLogger(harness.Quiet()))
	if err != nil {
		return err
	}
	b.c = c
	ctx := c.Context(context.Background())
	refs := make([]mobula.Ref[standing], b.Accounts)
	for i := range refs {
		a, err := accountType.Spawn(ctx, mobula.V(b.journal(i)), mobula.Named("bank", accountName(i)), mobula.Detached())
		if err != nil {
			return err
		}
		refs[i] = accountTell.Go(ctx, a)
	}
	if _, err = mobula.GetAll(ctx, refs); err != nil {
		return err
	}
	_, err = io.WriteString(os.Stdout, "open\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return err
}

// work moves money until standard input ends. At each line of it, all that was begun is ended, said, and gone on with at the next.
func (b *teller) work() (err error) {
	if b.moves, err = os.Create(b.done(b.Number)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			if err := b.moveOn(ctx, w); err != nil {
				cancel(err)
				_, _ = fmt.Printf("failed %v\n", err)
			}
		})
	}
	in := bufio.NewScanner(os.Stdin)
	_, _ = fmt.Println("working")
	for in.Scan() {
		b.doing.Lock()
		_, _ = fmt.Println("paused")
		in.Scan()
		b.doing.Unlock()
		_, _ = fmt.Println("working")
	}
	cancel(nil)
	wg.Wait()
	return nil
}

// moveOn moves money, one amount after another.
func (b *teller) moveOn(ctx context.Context, w int) error {
	rng := rand.New(rand.NewPCG(uint64(b.Number), uint64(w)))
	for n := 0; ctx.Err() == nil; n++ {
		if err := func() error {
			b.doing.RLock()
			defer b.doing.RUnlock()
			from, to, sum := rng.IntN(b.Accounts), rng.IntN(b.Accounts), 1+rng.IntN(9)
			entry := fmt.Sprintf("%d/%d/%d", b.Number, w, n)
			if err := b.book(ctx, from, entry+"/out", -sum); err != nil {
				return err
			}
			if err := b.book(ctx, to, entry+"/in", sum); err != nil {
				return err
			}
			_, err := fmt.Fprintf(b.moves, "%d %d %d\n", from, to, sum)
			return err
		}(); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// book asks for one entry until it is made. What must not be is an error: an account that is dead or has lost its name, an answer that does
// not come.
func (b *teller) book(ctx context.Context, i int, entry string, by int) error {
	for ctx.Err() == nil {
		c, err := b.cluster(ctx)
		if err != nil {
			return err
		}
		_, err = b.ask(c.Context(ctx), i, func(ctx context.Context, a mobula.ActorRef[account]) mobula.Ref[standing] {
			return accountBook.Go(ctx, a, mobula.V(entry), mobula.V(by))
		})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, mobula.ErrActorDied), errors.Is(err, mobula.ErrNotFound), errors.Is(err, mobula.ErrGetTimeout):
			return fmt.Errorf("account %d, entry %s: %w", i, entry, err)
		case errors.Is(err, mobula.ErrActorUnavailable):
		default:
			b.drop(c)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return context.Cause(ctx)
}

func (b *teller) ask(ctx context.Context, i int, call func(context.Context, mobula.ActorRef[account]) mobula.Ref[standing]) (standing, error) {
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience())
	defer cancel()
	b.mu.Lock()
	a, ok := b.refs[i]
	b.mu.Unlock()
	if !ok {
		var err error
		if a, err = mobula.GetActor[account](ctx, "bank", accountName(i)); err != nil {
			return standing{}, err
		}
		b.mu.Lock()
		b.refs[i] = a
		b.mu.Unlock()
	}
	ref := call(ctx, a)
	s, err := ref.Get(ctx)
	if errors.Is(err, mobula.ErrGetTimeout) { // what a reader of the failure wants to know
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), testkit.Patience())
		defer cancel()
		b.mu.Lock()
		c := b.c
		b.mu.Unlock()
		if c != nil {
			why, e := c.Explain(ctx, ref.ID())
			who, e2 := c.Explain(ctx, a.ID())
			err = fmt.Errorf("%w: call: %+v, %v; account: %+v, %v", err, why, e, who, e2)
		}
	}
	return s, err
}

// cluster is the connection, made again after the last one ended.
func (b *teller) cluster(ctx context.Context) (*mobula.Cluster, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for end := time.Now().Add(testkit.Patience()); b.c == nil; {
		c, err := mobula.Connect(ctx, b.Address, mobula.ConnectLogger(harness.Quiet()))
		if err == nil {
			b.c = c
			clear(b.refs)
			break
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return b.c, nil
}

func (b *teller) drop(c *mobula.Cluster) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == c {
		b.c = nil
		_ = c.Close(context.Background()) // its node has told it to go
	}
}

// clerk is a teller's process as the test sees it.
type clerk struct {
	*harness.NodeProcess
	in  io.Writer
	out *bufio.Scanner
}

func (b branch) launch(t *testing.T) *clerk {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), bankEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &clerk{&harness.NodeProcess{Cmd: cmd, Stdin: stdin}, stdin, bufio.NewScanner(stdout)}
	t.Cleanup(func() { p.Stop(t) })
	return p
}

// says waits for a line.
func (p *clerk) says(t *testing.T, want string) {
	t.Helper()
	late := time.AfterFunc(2*testkit.Patience(), func() { _ = p.Cmd.Process.Signal(syscall.SIGQUIT) }) // then the read below ends
	defer late.Stop()
	if p.out.Scan(); p.out.Text() != want {
		t.Fatalf("a process of the bank says %q, where %q was to come", p.out.Text(), want)
	}
}

func (p *clerk) told(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// audit has the tellers pause, compares every account with what they were answered, and lets them go on. It gives how many moves there were.
func (b *teller) audit(t *testing.T, ctx context.Context, clerks []*clerk) (moves int) {
	t.Helper()
	for _, p := range clerks {
		p.told(t, "pause")
	}
	want := make([]standing, b.Accounts)
	for i := range want {
		want[i].Balance = opening
	}
	for n, p := range clerks {
		p.says(t, "paused")
		data, err := os.ReadFile(b.done(n + 1))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var from, to, sum int
			if _, err := fmt.Sscanf(line, "%d %d %d\n", &from, &to, &sum); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			want[from].Balance -= sum
			want[to].Balance += sum
			want[from].Entries++
			want[to].Entries++
			moves++
		}
	}
	var wg sync.WaitGroup
	got, failed := make([]standing, b.Accounts), make([]error, b.Accounts)
	for i := range got {
		wg.Go(func() { got[i], failed[i] = b.look(ctx, i) })
	}
	wg.Wait()
	for i := range want {
		if failed[i] != nil || got[i] != want[i] {
			t.Fatalf("account %d stands at %+v, %v; by what was answered it is %+v", i, got[i], failed[i], want[i])
		}
	}
	for _, p := range clerks {
		p.told(t, "go")
		p.says(t, "working")
	}
	return moves
}

// look asks an account how it stands until it says so.
func (b *teller) look(ctx context.Context, i int) (standing, error) {
	for {
		c, err := b.cluster(ctx)
		if err != nil {
			return standing{}, err
		}
		got, err := b.ask(c.Context(ctx), i, func(ctx context.Context, a mobula.ActorRef[account]) mobula.Ref[standing] {
			return accountTell.Go(ctx, a)
		})
		switch {
		case err == nil, ctx.Err() != nil:
			return got, err
		case errors.Is(err, mobula.ErrActorUnavailable):
			time.Sleep(5 * time.Millisecond)
		case errors.Is(err, mobula.ErrShutdown), errors.Is(err, mobula.ErrOwnerDied):
			b.drop(c) // its node was stopped
		default:
			return got, err
		}
	}
}

// Callers move money between named actors while workers and the node are killed, and the node is stopped in order: every entry that was
// answered is there exactly once, and every caller goes on.
func TestTheBank(t *testing.T) {
	d := time.Minute
	if harness.Stress {
		d = time.Hour
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 * harness.MiB, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	b := &teller{branch: branch{Address: p.Address, Dir: harness.TempDir(t), Accounts: harness.Size(50, 1000)}, refs: make(map[int]mobula.ActorRef[account])}
	t.Cleanup(func() {
		if b.c != nil {
			_ = b.c.Close(context.Background())
		}
	})
	founder := b.process(0).launch(t)
	founder.says(t, "open")
	founder.Stop(t)
	var clerks []*clerk
	for n := range 3 {
		c := b.process(n + 1).launch(t)
		c.says(t, "working")
		clerks = append(clerks, c)
	}
	harms := slices.Concat(slices.Repeat([]string{"worker"}, harness.Size(8, 200)), slices.Repeat([]string{"node"}, harness.Size(2, 20)), slices.Repeat([]string{"stop"}, harness.Size(1, 10)))
	rng := testkit.Rand(t)
	rng.Shuffle(len(harms), func(i, j int) { harms[i], harms[j] = harms[j], harms[i] })
	moves := 0
	for i, what := range harms {
		began := time.Now()
		switch what {
		case "worker":
			harness.Eventually(t, ctx, "a worker runs", func() bool { return len(harness.WorkersOf(p.Address)) > 0 })
			if pids := harness.WorkersOf(p.Address); len(pids) > 0 {
				_ = syscall.Kill(pids[rng.IntN(len(pids))], syscall.SIGKILL) // it may have ended by itself
			}
		case "node":
			p.Kill(t)
			p = harness.MustLaunch(t, cfg)
		case "stop":
			p.Stop(t)
			p = harness.MustLaunch(t, cfg)
		}
		if i%harness.Size(4, 10) == 0 || i == len(harms)-1 {
			now := b.audit(t, ctx, clerks)
			if now <= moves && i > 0 {
				t.Errorf("after harm %d, %s: no caller went on: %d moves", i, what, now)
			}
			moves = now
		}
		t.Logf("harm %d, %s: %d moves, %v", i, what, moves, time.Since(began).Round(time.Millisecond))
	}
	t.Logf("%d moves, %d harms", b.audit(t, ctx, clerks), len(harms))
	for _, c := range clerks {
		c.Stop(t)
	}
}

// process is the same bank's process of a number.
func (b branch) process(n int) branch {
	b.Number = n
	return b
}
