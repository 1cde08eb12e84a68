package agent

import (
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

// TestAcknowledgementsThatAreOverdue looks at the sessions of replicas each second while commits wait, as the agent does.
func TestAcknowledgementsThatAreOverdue(t *testing.T) {
	t.Parallel()
	type sessions []mysqld.ReceiverSession
	type looks struct {
		count    int
		sessions sessions
		overdue  bool
	}
	sent := func(id int64) mysqld.ReceiverSession { return mysqld.ReceiverSession{ID: id, SentAll: true} }
	sending := func(id int64) mysqld.ReceiverSession { return mysqld.ReceiverSession{ID: id} }
	for what, story := range map[string][]looks{
		"a replica hangs": {
			{5, sessions{sent(1)}, false}, {10, sessions{sent(1)}, true},
		},
		"it continues, and its acknowledgement ends the commit": {
			{5, sessions{sent(1)}, false}, {1, sessions{sent(1)}, true}, {1, nil, false}, {5, sessions{sent(1)}, false}, {1, sessions{sent(1)}, true},
		},
		"no replica is connected": {
			{20, nil, false},
		},
		"a large transaction takes minutes": {
			{180, sessions{sending(1)}, false}, {5, sessions{sent(1)}, false}, {1, nil, false},
		},
		"the second replica hangs, and the first receives a large transaction": {
			{180, sessions{sending(1), sent(2)}, false}, {5, sessions{sent(1), sent(2)}, false}, {1, sessions{sent(1), sent(2)}, true},
		},
		"another transaction is sent meanwhile": {
			{4, sessions{sent(1)}, false}, {1, sessions{sending(1)}, false}, {5, sessions{sent(1)}, false}, {1, sessions{sent(1)}, true},
		},
		"a replica connects again, and has the time again": {
			{5, sessions{sent(1), sent(2)}, false}, {1, sessions{sent(1), sent(2)}, true},
			{5, sessions{sent(1), sent(3)}, false}, {1, sessions{sent(1), sent(3)}, true},
		},
		"the one that hangs is killed": {
			{5, sessions{sent(1), sent(2)}, false}, {1, sessions{sent(1), sent(2)}, true}, {1, sessions{sent(1)}, true},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var seen sentAll
			now := time.Now()
			for i, chapter := range story {
				for range chapter.count {
					now = now.Add(time.Second)
					if overdue := seen.lasts(now, chapter.sessions) >= acknowledgeWithin; overdue != chapter.overdue {
						t.Errorf("chapter %d: %v is overdue: %t", i+1, chapter.sessions, overdue)
					}
				}
			}
		})
	}
}

// TestWhenReplicasAreAskedAgain: a replica that catches up does not keep the agent from asking another one again.
func TestWhenReplicasAreAskedAgain(t *testing.T) {
	t.Parallel()
	var seen sentAll
	began := time.Now()
	for second, story := range []struct {
		sessions []mysqld.ReceiverSession
		asks     bool
	}{
		{[]mysqld.ReceiverSession{{ID: 1, SentAll: true}, {ID: 2}}, false},
		{[]mysqld.ReceiverSession{{ID: 1, SentAll: true}, {ID: 2}}, false},
		{[]mysqld.ReceiverSession{{ID: 1, SentAll: true}, {ID: 2}}, true},
		{[]mysqld.ReceiverSession{{ID: 2}, {ID: 3, SentAll: true}}, false},
		{[]mysqld.ReceiverSession{{ID: 2}, {ID: 3, SentAll: true}}, false},
		{[]mysqld.ReceiverSession{{ID: 2}, {ID: 3, SentAll: true}}, true},
		{[]mysqld.ReceiverSession{{ID: 2}, {ID: 3}}, false},
		{nil, false},
	} {
		now := began.Add(time.Duration(second) * time.Second)
		if lasts := seen.lasts(now, story.sessions); lasts != 0 {
			t.Errorf("second %d: all replicas have everything for %s", second, lasts)
		}
		if longest := seen.longest(now); longest >= askAgainAfter != story.asks {
			t.Errorf("second %d: some replica has everything for %s, it is asked again: %t", second, longest, !story.asks)
		}
	}
}
