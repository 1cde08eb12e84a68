package replication

import "fmt"

// primaryDataLost says how the primary on record is seen to have lost data; empty where it is not. Such a primary is kept from taking
// writes: an empty one would be served and copied to the others, and one that went back would give the numbers of lost transactions to
// new ones, which replicas that have the lost ones would skip without a word.
func (c Cluster) primaryDataLost() string {
	primary, found := c.member(c.Record.Primary)
	if !found {
		return ""
	}
	if lostItsData(primary, c.Record) {
		return "member " + primary.Name + " is the primary on record but came back with an empty volume; it is kept from serving an empty database and from being copied to the others: restore its volume, or delete this resource and apply it anew to adopt the data of the others"
	}
	lacks, has := c.wentBack(primary)
	if lacks.Empty() {
		return ""
	}
	return fmt.Sprintf("member %s is the primary on record but came back without %d transactions of its own that %s has (%s): its volume was restored from an older copy, or its disk lost writes; it is kept from taking writes: restore what is missing, or delete this resource and apply it anew to adopt the data of the others", primary.Name, lacks.Count(), has, lacks)
}

// lostItsData says whether the primary's data is newly made although the Record says that it had some: InSync is empty only
// between the appointment of a cluster's first primary and its first answer as one.
func lostItsData(primary Member, record Record) bool {
	return primary.Status != nil && primary.Status.Origin.unused() && len(record.InSync) > 0
}

// confirmed says whether the member was told its role since its mysqld started.
func (s Status) confirmed() bool { return s.Assignment != nil && s.Assignment.Boot == s.Boot }

// wentBack finds transactions that the primary made, that it has not any more, and the replica that has them. It is certain only of a
// primary that waits to be confirmed, since any other may write by now. What replicas get from it is in its binary log, on its disk,
// before (sync_binlog), so its recovery brings all of it back.
func (c Cluster) wentBack(primary Member) (lacks GTIDSet, has string) {
	status := primary.Status
	if !primary.read() || status.State != StateWaiting || status.Writable || status.confirmed() {
		return GTIDSet{}, ""
	}
	for _, replica := range c.replicas() {
		if !replica.read() {
			continue
		}
		lacks = replica.Status.Received.Subtract(status.Received.Union(status.Pending)).OfServer(status.ServerUUID)
		if !lacks.Empty() {
			return lacks, replica.Name
		}
	}
	return GTIDSet{}, ""
}
