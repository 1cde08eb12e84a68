//go:build !race && !without_vcenter

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// TestMain is also the program: a test starts this test binary through a link with the program's name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == vcenter.Program {
		main()
		return
	}
	m.Run()
}

// TestTheHelperSpeaksToAVCenter: in a separate process, as the operator starts it.
func TestTheHelperSpeaksToAVCenter(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), vcenter.Program)
	if err := os.Symlink(own, path); err != nil {
		t.Fatal(err)
	}
	helper := vcenter.NewProcess(path, time.Now)
	group := vcenter.Group{Folder: "shop-web", UID: "u1", Account: vcenter.Account{Host: v.Host, User: vcsim.User, Password: vcsim.Password, Authorities: v.Authorities}}
	if err := helper.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}); err != nil {
		t.Fatal(err)
	}
	found, err := helper.Look(t.Context(), group)
	if err != nil || found.Folder == "" || found.Path != "/DC0/vm/shop-web" {
		t.Errorf("found %+v, error %v", found, err)
	}
	group.Account.Password = "wrong"
	if _, err := helper.Look(t.Context(), group); err == nil || !strings.Contains(err.Error(), "LoginRefused") {
		t.Errorf("error %v", err)
	}
	if sessions := len(v.Sessions()); sessions != 1 {
		t.Errorf("%d sessions", sessions)
	}
	// When the operator ends it, the program ends its sessions, and the operator waits for that.
	helper.End()
	if left := len(v.Sessions()); left != 0 {
		t.Errorf("%d sessions are left", left)
	}
}
