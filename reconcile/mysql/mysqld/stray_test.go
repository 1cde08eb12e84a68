package mysqld

import "testing"

// TestSessionsOfClients: those of the operator, of mysqld itself, and of a person in the Pod stay.
func TestSessionsOfClients(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of   process
		want bool
	}{
		"a client":                    {process{user: "shop", host: "10.0.0.7:51239"}, true},
		"root, from elsewhere":        {process{user: "root", host: "[fd00::7]:51239"}, true},
		"root, in the Pod":            {process{user: "root", host: "127.0.0.1:51239"}, false},
		"root, at the socket":         {process{user: "root", host: "localhost"}, false},
		"the agent":                   {process{user: AgentUser, host: "localhost"}, false},
		"another member's agent":      {process{user: ObserverUser, host: "10.0.0.7:51239"}, false},
		"a replica":                   {process{user: ReplicationUser(1), host: "10.0.0.7:51239"}, false},
		"the applier":                 {process{user: "system user"}, false},
		"a client that is logging in": {process{user: "unauthenticated user", host: "10.0.0.7:51239"}, false},
		"the event scheduler":         {process{user: "event_scheduler", host: "localhost", command: "Daemon"}, false},
	} {
		if got := test.of.isClient(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
