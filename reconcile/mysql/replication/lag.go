package replication

import (
	"fmt"
	"time"
)

// LagMemory knows how far a replica has been behind its primary lately: the largest of the lagSteps within lagLasts, and when the replica
// was last so far behind. A replica that lags again and again so has news a few times, and not with each of its steps.
type LagMemory struct {
	most int
	at   time.Time
}

// lagSteps are the seconds that users read. They are coarse, because each change of what users read is a write to the API server: the lag
// itself changes with every transaction. Less than the first one does not matter for a takeover.
func lagSteps() []int { return []int{5, 10, 20, MaxServingLagSeconds} }

// lagLasts is for how long a LagMemory remembers.
const lagLasts = 5 * time.Minute

// Observe returns the memory after another look at the lag of a replica. A lag that MySQL does not know counts as none.
func (l LagMemory) Observe(now time.Time, lagSeconds *int64) LagMemory {
	step := 0
	for _, one := range lagSteps() {
		if lagSeconds != nil && *lagSeconds >= int64(one) {
			step = one
		}
	}
	if step >= l.Lately(now) {
		return LagMemory{most: step, at: now}
	}
	return l
}

// Lately is the largest of the lagSteps by which the replica has been behind within lagLasts; 0 for none.
func (l LagMemory) Lately(now time.Time) int {
	if now.Sub(l.at) >= lagLasts {
		return 0
	}
	return l.most
}

// whyLater says that a takeover takes longer, because even the closest of these replicas has been behind; empty if one has not. Another one
// may become the primary, if only it has received everything. It gives the lag, and not how long the replica needs: that is longer than the
// lag if it applies more slowly than clients commit.
func (c Cluster) whyLater(able []Member) string {
	least := c.behindLately(able[0])
	for _, member := range able[1:] {
		least = min(least, c.behindLately(member))
	}
	if least == 0 {
		return ""
	}
	const longer = "; a takeover takes longer while the replica applies what it has received: the closest one has been at least %d seconds behind within the last five minutes"
	return fmt.Sprintf(longer, least)
}

// behindLately is the largest of the lagSteps by which the replica has been behind lately; 0 for none, or if nothing is left to apply.
func (c Cluster) behindLately(replica Member) int {
	if c.isDrained(*replica.Status) {
		return 0
	}
	return replica.Status.BehindLately
}

// isDrained reports whether a replica has applied everything, and its primary makes nothing more.
func (c Cluster) isDrained(replica Status) bool {
	primary := c.primaryStatus()
	return (primary == nil || primary.State != StateWriting) && replica.Executed.Contains(replica.Received)
}

// behindNow is for how many seconds a member is behind in what it must apply before it leads. It is 0 for less than the first of the
// lagSteps, or if that is not known. MySQL knows no lag of a replica without a connection that has applied everything.
func (c Cluster) behindNow(name string) int {
	member, found := c.member(name)
	if !found || member.Status == nil || member.Status.LagSeconds == nil || member.Status.Executed.Contains(member.Status.Received) {
		return 0
	}
	if lag := int(*member.Status.LagSeconds); lag >= lagSteps()[0] {
		return lag
	}
	return 0
}
