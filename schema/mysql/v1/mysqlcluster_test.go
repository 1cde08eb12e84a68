package v1

import "testing"

func TestWhatThePrimaryDoesWithoutReplicas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		asked   WhenReplicasLost
		members int
		want    WhenReplicasLost
	}{
		{"", 1, Continue}, {"", 2, Continue}, {"", 3, Block}, {"", 9, Block}, {Continue, 3, Continue}, {Block, 2, Block},
	} {
		if got := (Durability{WhenReplicasLost: test.asked}).For(test.members); got != test.want {
			t.Errorf("%q with %d members: %s, want %s", test.asked, test.members, got, test.want)
		}
	}
}
