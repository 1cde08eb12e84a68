package replication

// A primary that is replaced may have transactions that no other member has. Its clients were never told that these succeeded: the members
// that were read for the new primary have everything that was acknowledged (handover.go). So they may be dropped, after a copy of them is
// kept. Nothing else that a member has alone may be: its agent knows what the member had when it stopped being the primary.

// IsReplaced reports whether a member that holds a record as the primary is replaced by the next record.
func IsReplaced(held Record, role Role, next Record) bool {
	return role == RolePrimary && next.FormerPrimary != "" && next.FormerPrimary == held.Primary
}

// isUnacknowledged reports whether the member made these transactions as the primary, and was replaced without them.
func (l Observed) isUnacknowledged(errant GTIDSet) bool {
	return l.HadAsPrimary.Contains(errant) && errant.OfServer(l.Server.ServerUUID).Contains(errant)
}
