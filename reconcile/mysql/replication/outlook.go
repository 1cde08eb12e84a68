package replication

import "time"

// Outlook is what changes next in the record if everything stays as it was observed.
type Outlook struct {
	// Changes reports whether Record differs from the current one. It does not if nothing changes within longestOutlook.
	Changes bool
	// After is when it changes, at the latest.
	After time.Duration
	// Record is the next record, and Note what users read then.
	Record Record
	Note   *Note
}

// longestOutlook is how far an Outlook reaches: further than any time that a takeover waits for by itself.
const longestOutlook = 2 * time.Minute

// Outlook returns what the decision changes next if everything stays as it was observed. What an operator remembers of members
// (Member.UnheardFor and so on) may be unknown, and then counts from now.
func (c Cluster) Outlook(decide func(Cluster) Decision) Outlook {
	for after := time.Duration(0); after <= longestOutlook; after += time.Second {
		if decision := decide(c.lasting(after)); !decision.Record.Equal(c.Record) {
			return Outlook{Changes: true, After: after, Record: decision.Record, Note: decision.Note}
		}
	}
	return Outlook{Record: c.Record, Note: decide(c.lasting(longestOutlook)).Note}
}

// lasting returns what would be observed if everything lasted longer that is not as in a healthy cluster.
func (c Cluster) lasting(longer time.Duration) Cluster {
	before := c.Members
	if c.SinceTakeover > 0 {
		c.SinceTakeover += longer
	}
	c.Members = make([]Member, 0, len(before))
	for _, member := range before {
		c.Members = append(c.Members, member.lasting(longer, c.Record))
	}
	return c
}

func (m Member) lasting(longer time.Duration, record Record) Member {
	if m.Status == nil {
		m.UnheardFor += longer
		if m.IsRunning {
			m.MissingFor += longer
		}
		return m
	}
	status, more := *m.Status, int(longer.Seconds())
	m.Status = &status
	switch {
	case record.FormerPrimary == "":
	case status.IsSilent(record):
		m.SilentFor += longer
	default:
		m.UnfencedFor += longer
	}
	if status.IsLate() {
		status.UnansweredFor += longer
	}
	if status.AcksShortSeconds > 0 {
		status.AcksShortSeconds += more
	}
	if status.hearsNothing() {
		status.SourceSilentFor += longer
	}
	if status.DeafFor > 0 {
		status.DeafFor += longer
	}
	status.volumeLasting(longer)
	return m
}

// volumeLasting adds to for how long the volume of a member has failed, or its commits have hung.
func (s *Status) volumeLasting(longer time.Duration) {
	if s.Probe.StuckFor > 0 {
		s.Probe.StuckFor += longer
	}
	if s.Probe.FailingFor > 0 {
		s.Probe.FailingFor += longer
	}
	if s.isFullAndHangs() {
		s.Transactions.CommitWaitSeconds += int64(longer.Seconds())
	}
}
