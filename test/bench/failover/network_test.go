package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/test/kube"
)

// newNetwork starts a program of a Pod in a network of its own, and returns the network and what ends the program.
func newNetwork(t *testing.T, pod string) (place, func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a network")
	}
	for _, program := range []string{"unshare", "nsenter", "iptables"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s, as a dev cluster does: %v", program, err)
		}
	}
	command := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-c", "ip link set lo up && exec sleep 600")
	command.Env = append(os.Environ(), "HOSTNAME="+pod)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = command.Process.Kill() // a story may have ended it
		_ = command.Wait()
	}
	t.Cleanup(end)
	var found place
	err := kube.Wait(t.Context(), "the program of the Pod", 30*time.Second, func(context.Context) (bool, string) {
		one, err := networkOf(pod, "sleep")
		found = one
		return err == nil, "no program"
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, end
}

// rules returns what iptables has been told in a network.
func rules(t *testing.T, in place) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "nsenter", "--net=/proc/self/fd/3", "iptables", "-w", "10", "-S")
	command.ExtraFiles = []*os.File{in.namespace}
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "-A") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func TestCutsEndAlsoAfterTheirProgram(t *testing.T) {
	t.Parallel()
	own, endProgram := newNetwork(t, "cut-0")
	other, err := networkOf("cut-0", "sleep") // ending a cut closes its network
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	end, err := inflict(t.Context(), []cut{{own, [][]string{allIn(), allOut()}}, {own, between("192.0.2.7")}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-A INPUT -s 192.0.2.7/32 -j DROP", "-A INPUT ! -i lo -j DROP",
		"-A OUTPUT -d 192.0.2.7/32 -j DROP", "-A OUTPUT ! -o lo -j DROP",
	}
	if diff := cmp.Diff(want, rules(t, other)); diff != "" {
		t.Error(diff)
	}
	endProgram()
	if err := end(); err != nil {
		t.Errorf("end the cuts: %v", err)
	}
	if found := rules(t, other); len(found) > 0 {
		t.Errorf("rules are left: %v", found)
	}
}

// A connection from within a Pod reaches the Pod's loopback, not this machine's.
func TestDialWithinAPod(t *testing.T) {
	t.Parallel()
	own, _ := newNetwork(t, "dial-0")
	defer own.close()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := own.dial(t.Context(), "tcp", listener.Addr().String())
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, %v, want a refusal: nothing listens in the Pod", conn, err)
	}
}

func TestNetworkOfAPodThatIsNotHere(t *testing.T) {
	t.Parallel()
	if _, err := networkOf("elsewhere-0", "mysqld"); err == nil || !strings.Contains(err.Error(), "elsewhere-0") {
		t.Errorf("got %v, want an error that names the Pod", err)
	}
}
