package mysqld

import (
	"slices"
	"strings"
	"testing"
)

func bootstrap(root string) Bootstrap {
	return Bootstrap{
		Agent: Account{AgentUser, "agent-secret"}, Replication: Account{ReplicationUser(1), "replication-secret"}, Clone: Account{CloneUser, "clone-secret"},
		Root: root, NewData: true,
	}
}

// bootstrap.sql is in a folder that the MySQL image can read.
func TestBootstrapHoldsNoPassword(t *testing.T) {
	t.Parallel()
	text, err := bootstrap("root-secret").SQL()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "secret") || strings.Contains(text, " BY ") {
		t.Errorf("the file has a password in clear text:\n%s", text)
	}
	for _, account := range []string{"'root'@'%'", "'" + AgentUser + "'@'localhost'", "'" + ReplicationUser(0) + "'@'%'", "'" + ReplicationUser(8) + "'@'%'", "'" + ObserverUser + "'@'%'", "'" + CloneUser + "'@'%'"} {
		created := "CREATE USER IF NOT EXISTS " + account + " IDENTIFIED WITH caching_sha2_password AS 0x24412430303524"
		if !strings.Contains(text, created) {
			t.Errorf("no %q in:\n%s", created, text)
		}
	}
}

func TestBootstrapRefusesPasswordsThatOpenNothing(t *testing.T) {
	t.Parallel()
	withNUL, without := bootstrap("fine"), bootstrap("fine")
	withNUL.Clone.Password, without.Replication.Password = "a\x00b", ""
	for name, b := range map[string]Bootstrap{"root": bootstrap("a\x00b"), CloneUser: withNUL, ReplicationUsers: without} {
		text, err := b.SQL()
		if err == nil || text != "" {
			t.Fatalf("%s: an unusable password was written: %q", name, text)
		}
		if !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "a\x00b") {
			t.Errorf("the error must name %s and must not contain the password: %v", name, err)
		}
	}
}

// TestRootIsMadeWhereRestoredDataLacksIt: an existing account of that name keeps its privileges, and data in use is not changed.
func TestRootIsMadeWhereRestoredDataLacksIt(t *testing.T) {
	t.Parallel()
	restored, used := bootstrap("root-secret"), bootstrap("root-secret")
	restored.NewData, restored.RestoredData, used.NewData = false, true, false
	for name, test := range map[string]struct {
		bootstrap Bootstrap
		want      []string
	}{
		"restored": {restored, []string{"SET @has_root", "IF(@has_root, ", "RENAME USER "}},
		"in use":   {used, nil},
	} {
		text, err := test.bootstrap.SQL()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "root-secret") || strings.Contains(text, "'root'@'%'") != (test.want != nil) {
			t.Errorf("%s:\n%s", name, text)
		}
		for _, part := range test.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q in\n%s", name, part, text)
			}
		}
	}
}

// init_file takes one statement a line (manual, "init_file"), and every statement must be harmless on a member with data.
func TestBootstrapIsOneStatementALine(t *testing.T) {
	t.Parallel()
	text, err := bootstrap("two\nlines;").SQL()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines {
		if !strings.HasSuffix(line, ";") || strings.Contains(strings.TrimSuffix(line, ";"), ";\n") {
			t.Errorf("not one statement: %q", line)
		}
	}
	if lines[0] != "SET SESSION sql_log_bin = 0;" || lines[1] != "SET SESSION sql_mode = '';" {
		t.Errorf("the file begins with %q and %q: it must not write to the binary log or depend on sql_mode", lines[0], lines[1])
	}
}

func TestBootstrapLeavesRootAloneOnceThereIsData(t *testing.T) {
	t.Parallel()
	b := bootstrap("secret")
	b.NewData = false
	text, err := b.SQL()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "root") || strings.Contains(text, "'secret'") {
		t.Errorf("the file changes root on a member that has data:\n%s", text)
	}
	for _, user := range []string{AgentUser, ReplicationUser(8), ObserverUser, CloneUser} {
		altered := strings.Index(text, "ALTER USER '"+user+"'@")
		if altered < 0 || !strings.Contains(text[altered:], "IDENTIFIED") {
			t.Errorf("%s does not get the current password:\n%s", user, text)
			continue
		}
		if first, _, _ := strings.Cut(text[altered:], ";"); !strings.Contains(first, "PASSWORD EXPIRE NEVER PASSWORD HISTORY 0 ") {
			t.Errorf("%s is subject to the rules for users' passwords: %s", user, first)
		}
	}
}

func TestBootstrapGrantsTheLeast(t *testing.T) {
	t.Parallel()
	text, err := bootstrap("secret").SQL()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		own := strings.Contains(line, "mysql_operator_")
		if own && strings.HasPrefix(line, "GRANT") && (strings.Contains(line, "ALL ") || strings.Contains(line, "GRANT OPTION") || strings.Contains(line, " SUPER")) {
			t.Errorf("more privileges than an account of the operator needs: %s", line)
		}
		if own && strings.Contains(line, "'@'%'") && strings.Contains(line, "IDENTIFIED") && !strings.Contains(line, "REQUIRE X509") {
			t.Errorf("other machines can log in without a client certificate: %s", line)
		}
	}
	if strings.Contains(text, "'"+AgentUser+"'@'%'") {
		t.Error("other machines can log in to the agent's account")
	}
}

// TestBootstrapRefusesClients: a former primary starts without clients, and nothing that fails afterwards may let them in.
func TestBootstrapRefusesClients(t *testing.T) {
	t.Parallel()
	for _, refuses := range []bool{false, true} {
		b := bootstrap("secret")
		b.RefuseClients = refuses
		text, err := b.SQL()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.HasSuffix(text, ";\nSET GLOBAL offline_mode = ON;\n"); got != refuses || strings.Contains(text, "offline_mode") != refuses {
			t.Errorf("refuses clients: %t, want %t:\n%s", got, refuses, text)
		}
	}
}

// TestBootstrapLocksMembersOut: only those that it names can follow this mysqld when it has started.
func TestBootstrapLocksMembersOut(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string][]int{"as usual": nil, "the primary opens by its replicas": {1, 8}} {
		b := bootstrap("secret")
		b.Receivers = allowed
		text, err := b.SQL()
		if err != nil {
			t.Fatal(err)
		}
		for ordinal := range mostMembers {
			account, isAllowed := "'"+ReplicationUser(ordinal)+"'@'%' ", slices.Contains(allowed, ordinal)
			made := strings.Count(text, account+identifiedAs) == 2 && !strings.Contains(text, account+"IDENTIFIED BY")
			locks, unlocks := 0, 0
			for line := range strings.Lines(text) {
				if strings.Contains(line, account) {
					locks, unlocks = locks+strings.Count(line, accountLock), unlocks+strings.Count(line, accountUnlock)
				}
			}
			if !made || isAllowed && (locks != 0 || unlocks != 2) || !isAllowed && (locks != 2 || unlocks != 0) {
				t.Errorf("%s: member %d is locked %d times and unlocked %d times:\n%s", name, ordinal, locks, unlocks, text)
			}
		}
	}
}
