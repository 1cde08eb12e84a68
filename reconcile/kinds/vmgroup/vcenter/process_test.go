package vcenter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/test/hang"
)

// TestMain also runs the helper: a Process starts this test binary through a link of that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == Program {
		if err := Serve(Pipe(os.Stdin, os.Stdout), answering{}); err != nil {
			panic(err)
		}
		return
	}
	m.Run()
}

// answering is an API whose answers depend on the call.
type answering struct{}

func (answering) Look(ctx context.Context, group Group) (Inventory, error) {
	switch group.Folder {
	case "never":
		<-ctx.Done()
		return Inventory{}, ctx.Err()
	case "refused":
		return Inventory{}, &Error{Reason: LoginRefused, Message: "no", After: time.Minute}
	case "dies":
		panic("as the test wants")
	}
	return Inventory{Folder: group.Folder, Machines: []Machine{{Name: group.Account.Password, CPU: 2}}}, nil
}

func (answering) Do(_ context.Context, order Order) error {
	return &Error{Reason: Failed, Message: string(order.Verb) + " " + order.Machine}
}

// clock is a clock that the test sets forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func helperAt(t *testing.T, watch *clock) *Process {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), Program)
	if err := os.Symlink(own, path); err != nil {
		t.Fatal(err)
	}
	return NewProcess(path, watch.now)
}

func looked(t *testing.T, api API) {
	t.Helper()
	found, err := api.Look(t.Context(), Group{Folder: "f", Account: Account{Password: "p"}})
	want := Inventory{Folder: "f", Machines: []Machine{{Name: "p", CPU: 2}}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("error %v, found (-want +got):\n%s", err, diff)
	}
}

func TestAHelperAnswers(t *testing.T) {
	t.Parallel()
	api := helperAt(t, &clock{})
	looked(t, api)
	var known *Error
	if err := api.Do(t.Context(), Order{Verb: Clone, Machine: "m"}); !errors.As(err, &known) || *known != (Error{Reason: Failed, Message: "Clone m"}) {
		t.Errorf("error %v", err)
	}
	if _, err := api.Look(t.Context(), Group{Folder: "refused"}); !errors.As(err, &known) || *known != (Error{Reason: LoginRefused, Message: "no", After: time.Minute}) {
		t.Errorf("error %v", err)
	}
	// A call that waits without end does not delay others, and ends when its context does.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := api.Look(ctx, Group{Folder: "never"})
		ended <- err
	}()
	looked(t, api)
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	looked(t, api)
}

func TestAHelperThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	watch := &clock{}
	api := helperAt(t, watch)
	looked(t, api)
	var known *Error
	if _, err := api.Look(t.Context(), Group{Folder: "dies"}); !errors.As(err, &known) || known.Reason != HelperNotRunning || known.After == 0 {
		t.Fatalf("error %v", err)
	}
	if _, err := api.Look(t.Context(), Group{Folder: "f"}); !errors.As(err, &known) || known.Reason != HelperNotRunning {
		t.Errorf("it is started again at once: error %v", err)
	}
	watch.ahead.Add(int64(restHelper + time.Second))
	looked(t, api)
}

// TestAHelperThatHangsIsReplaced: it does not outlive the operator either.
func TestAHelperThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	watch := &clock{}
	api := helperAt(t, watch)
	// On a busy machine, a healthy helper may take a second to answer.
	api.ping, api.grace = 2*time.Second, 200*time.Millisecond
	looked(t, api)
	hung := api.current
	stop(t, hung)
	var known *Error
	if _, err := api.Look(t.Context(), Group{Folder: "f"}); !errors.As(err, &known) || known.Reason != HelperNotRunning {
		t.Fatalf("error %v", err)
	}
	hasEnded(t, hung, time.After(time.Minute))
	watch.ahead.Add(int64(restHelper + time.Second))
	looked(t, api)

	// First a helper that ends as it must, then one that hangs.
	last := api.current
	api.End()
	hasEnded(t, last, nil)
	looked(t, api)
	last = api.current
	stop(t, last)
	api.End()
	hasEnded(t, last, nil)
	api.End()
}

// stop makes a helper hang. The helper does not outlive the test: the go command waits for each process that has its output.
func stop(t *testing.T, one *helper) {
	t.Helper()
	t.Cleanup(func() { _ = one.process.Kill() })
	hang.Process(t, one.process.Pid)
}

// hasEnded fails the test unless a helper's process has ended, or ends before late; nil means now.
func hasEnded(t *testing.T, one *helper, late <-chan time.Time) {
	t.Helper()
	if late == nil {
		now := make(chan time.Time)
		close(now)
		late = now
	}
	select {
	case <-one.ended:
		return
	default:
	}
	select {
	case <-one.ended:
	case <-late:
		t.Error("the helper still runs")
	}
}

func TestAHelperThatIsNotThere(t *testing.T) {
	t.Parallel()
	var known *Error
	_, err := NewProcess(filepath.Join(t.TempDir(), Program), time.Now).Look(t.Context(), Group{})
	if !errors.As(err, &known) || known.Reason != HelperNotRunning || !strings.Contains(known.Message, "PATH") {
		t.Errorf("error %v", err)
	}
}

// TestAHelperEndsWithItsInput: in whatever way the operator ended.
func TestAHelperEndsWithItsInput(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(far, answering{}) }()
	looked(t, remote{newClient(near, pingHelper)})
	near.Close()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	silent, other := net.Pipe()
	go func() { ended <- Serve(other, answering{}) }()
	silent.Close()
	if err := <-ended; err != nil {
		t.Errorf("a helper without calls ended with %v", err)
	}
}

// remote is an API over a connection.
type remote struct{ client }

func (r remote) Look(ctx context.Context, group Group) (Inventory, error) {
	found := Inventory{}
	err := r.call(ctx, pathLook, group, &found)
	return found, err
}

func (r remote) Do(ctx context.Context, order Order) error {
	return r.call(ctx, pathDo, order, &struct{}{})
}

// TestPasswordsAreNotPrinted: messages and logs contain accounts.
func TestPasswordsAreNotPrinted(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		fmt.Fprintf(&said, format, Account{Host: "h", User: "u", Password: "secret"})
		fmt.Fprintf(&said, format, Group{Account: Account{Host: "h", User: "u", Password: "secret"}})
	}
	if strings.Contains(said.String(), "secret") {
		t.Errorf("printed: %s", said.String())
	}
}
