package mysqld

import "testing"

const (
	theAgent = "'" + AgentUser + "'@'localhost'"
	// errNoPrivilege is ER_SPECIFIC_ACCESS_DENIED_ERROR.
	errNoPrivilege = 1227
)

// TestNobodyBecomesTheAgentMysqld: users who may create accounts or grant roles cannot become root through the agent's account or role.
func TestNobodyBecomesTheAgentMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"})
	for _, statement := range []string{
		"CREATE USER hr IDENTIFIED BY 'hr'", "GRANT CREATE USER ON *.* TO hr",
		"CREATE USER giver IDENTIFIED BY 'giver'", "GRANT ROLE_ADMIN, SYSTEM_VARIABLES_ADMIN ON *.* TO giver",
	} {
		if err := root.exec(t.Context(), "prepare", statement); err != nil {
			t.Fatal(err)
		}
	}
	for user, statements := range map[string][]string{
		"hr": {
			"ALTER USER " + theAgent + " IDENTIFIED BY 'known'", "ALTER USER " + agentRole + " IDENTIFIED BY 'known' ACCOUNT UNLOCK",
			"RENAME USER " + theAgent + " TO 'mine'@'%'", "DROP USER " + theAgent, "DROP ROLE " + agentRole,
		},
		"giver": {"GRANT " + theAgent + " TO giver", "GRANT " + agentRole + " TO giver"},
	} {
		somebody := server.connect(t, Account{User: user, Password: user})
		for _, statement := range statements {
			if err := somebody.exec(t.Context(), "try", statement); !hasNumber(err, errNoPrivilege) {
				t.Errorf("%s may %s: %v", user, statement, err)
			}
		}
	}
}

// TestTheAgentWorksWhateverBecameOfItsRoleMysqld: root may change the role in any way. After the next start the agent works.
func TestTheAgentWorksWhateverBecameOfItsRoleMysqld(t *testing.T) {
	t.Parallel()
	server, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, withSemiSync()...)
	b.NewData = false
	for what, statements := range map[string][]string{
		"it is granted in a circle": {"REVOKE " + agentRole + " FROM " + theAgent, "GRANT " + theAgent + " TO " + agentRole},
		"it is gone":                {"DROP ROLE " + agentRole},
		"it has a password":         {"ALTER USER " + agentRole + " IDENTIFIED BY 'known' ACCOUNT UNLOCK"},
		"it is not the agent's":     {"ALTER USER " + theAgent + " DEFAULT ROLE NONE"},
		"the agent is locked":       {"ALTER USER " + theAgent + " ACCOUNT LOCK"},
	} {
		for _, statement := range statements {
			if err := root.exec(t.Context(), "spoil", statement); err != nil {
				t.Logf("%s: %v", what, err)
			}
		}
		server.stop(t)
		root = server.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, withSemiSync()...)
		agent := server.connect(t, b.Agent)
		if _, err := agent.Observe(t.Context()); err != nil {
			t.Errorf("%s: the agent cannot observe mysqld: %v", what, err)
		}
		if err := agent.StopEnforcingAcks(t.Context()); err != nil {
			t.Errorf("%s: the agent cannot act: %v", what, err)
		}
		known, err := Local(server.socket(), Account{User: "mysql_operator_agent_role", Password: "known"})
		if err != nil {
			t.Fatal(err)
		}
		if known.Ping(t.Context()) == nil {
			t.Errorf("%s: a client can log in as the role", what)
		}
		_ = known.Close()
	}
}
