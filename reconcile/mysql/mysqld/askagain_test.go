package mysqld

import "testing"

// TestMayAskAgain has the sessions in the order in which they connected.
func TestMayAskAgain(t *testing.T) {
	t.Parallel()
	client := process{user: "shop", command: "Query", state: "Waiting for semi-sync ACK from replica", info: "INSERT INTO orders VALUES ()"}
	agent := process{user: AgentUser, command: "Query", info: "SHOW PROCESSLIST"}
	replica := process{user: ReplicationUser(1), command: "Binlog Dump GTID"}
	login := process{user: ReplicationUser(2), command: "Sleep"}
	asking := process{user: AgentUser, command: "Query", state: "waiting for handler commit", info: askingAgain}
	other := process{user: "root", command: "Query", info: askingAgain}
	for what, story := range map[string]struct {
		connections int
		all         []process
		may         bool
	}{
		"a commit waits":                          {10, []process{agent, client, replica}, true},
		"no replica is connected":                 {10, []process{agent, client, login}, false},
		"it asks already":                         {10, []process{agent, replica, client, asking}, false},
		"a client's statement is not counted":     {10, []process{agent, replica, client, other}, true},
		"a replica has connected since":           {10, []process{agent, client, asking, replica}, true},
		"only one of two replicas is older":       {10, []process{agent, replica, client, asking, replica}, true},
		"it asked that replica, too":              {10, []process{agent, client, asking, replica, asking}, false},
		"many ask":                                {10, []process{agent, client, asking, asking, asking, replica}, false},
		"the only free connection is the reserve": {3, []process{agent, client, replica}, false},
		"one other connection is free":            {4, []process{agent, client, replica}, true},
	} {
		for i := range story.all {
			story.all[i].id = int64(i + 1)
		}
		if may := mayAskAgain(story.all, story.connections); may != story.may {
			t.Errorf("%s: it may ask again: %t", what, may)
		}
	}
	if kind, _ := recognise(askingAgain); kind != meansUpkeep {
		t.Errorf("%s is not hollow, so a primary that crashes meanwhile would have a transaction that only a user can judge", askingAgain)
	}
}
