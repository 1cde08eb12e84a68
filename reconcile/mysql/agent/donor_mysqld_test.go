package agent

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// joining is the assignment of a member that copies a replica, and then follows the primary.
func joining(primary, donor *realMember, revision int64) replication.Assignment {
	return replication.Assignment{
		Record: replication.Record{Epoch: 1, Revision: revision, Primary: "db-0", Joining: []string{"db-1"}}, Role: replication.RoleReplica,
		SourceHost: "localhost", SourceAddress: "127.0.0.1", SourcePort: primary.port,
		Donor: &replication.Donor{Name: "db-2", Host: "localhost", Address: "127.0.0.1", Port: donor.port, UUID: donor.agent.Status().ServerUUID},
	}
}

// isBusy writes rows until stop is called, which returns how many. Their ids are negative.
func (m *realMember) isBusy(t *testing.T, ca authority) (stop func() int) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	counts := make(chan int)
	const writers = 4
	for n := range writers {
		db := m.open(t, "root", "root's", nil, ca)
		go func() {
			count := 0
			for ctx.Err() == nil {
				if _, err := db.ExecContext(context.WithoutCancel(ctx), "INSERT INTO shop.orders VALUES (?)", -writers*count-n-1); err == nil {
					count++
				}
			}
			counts <- count
		}()
	}
	return func() int {
		end()
		return <-counts + <-counts + <-counts + <-counts
	}
}

// TestAReplicaIsCopiedMysqld: a member copies a replica, and then follows the primary. The primary no longer has the binary logs from
// before the copy. The copy brings the settings of the replica's channel, and none of its relay log.
func TestAReplicaIsCopiedMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	primary, donor, member := startRealMember(t, ca), startRealMember(t, ca), startRealMember(t, ca)
	primary.leads(t, 1, 0)
	root := primary.open(t, "root", "root's", nil, ca)
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
	primary.admits(t, ca, donor)
	donor.follow(t, primary, 1)
	donor.isCopied(t)
	donor.follow(t, primary, 2)
	donor.replicates(t)
	execute(t, root, "INSERT INTO shop.orders VALUES (1), (2)", "FLUSH BINARY LOGS")
	donor.until(t, "the donor has everything", func() bool { return donor.agent.Status().Executed.Contains(primary.agent.Status().Executed) })
	execute(t, root, "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")

	primary.admits(t, ca, member)
	donor.until(t, "the donor has the password", func() bool { return donor.agent.Status().Executed.Contains(primary.agent.Status().Executed) })
	member.until(t, "the member is made", func() bool { return member.agent.Status().Origin == replication.OriginFresh })
	former := member.agent.Status().ServerUUID
	other := joining(primary, donor, 2)
	other.Donor.UUID = former
	member.obeys(t, other)
	member.until(t, "it refuses a donor whose data was replaced", func() bool { return len(member.agent.Status().TriedDonors) == 1 })
	if status := member.agent.Status(); status.ServerUUID != former || !strings.Contains(status.Message, "db-2 is not fit to be copied") {
		t.Errorf("the member has the server_uuid %s, and had %s: %s", status.ServerUUID, former, status.Message)
	}
	stop := primary.isBusy(t, ca)
	member.obeys(t, joining(primary, donor, 2))
	member.isCopied(t)
	written := stop()
	if status := member.agent.Status(); status.CopiedFrom != donor.agent.Status().ServerUUID || len(status.TriedDonors) != 1 {
		t.Errorf("the member reports that it is a copy of %q, and that it has tried %v", status.CopiedFrom, status.TriedDonors)
	}
	execute(t, root, "INSERT INTO shop.orders VALUES (3)")
	member.obeys(t, joining(primary, donor, 3))
	member.replicates(t)
	reader, rows := member.open(t, "root", "root's", nil, ca), 0
	member.until(t, "the member has all rows", func() bool {
		return reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shop.orders").Scan(&rows) == nil && rows == 3+written
	})
	t.Logf("%d rows were written during the copy", written)
	same(t, root, reader)
	status := member.agent.Status()
	if status.ServerUUID == former || status.ServerUUID == donor.agent.Status().ServerUUID {
		t.Errorf("the member has the server_uuid %s", status.ServerUUID)
	}
	if status.CopiedFrom != "" || status.TriedDonors != nil || status.TablesWithoutRows == nil {
		t.Errorf("the member follows its primary, and reports %+v", status)
	}
	var port, positioned int
	const query = "SELECT port, auto_position FROM performance_schema.replication_connection_configuration"
	if err := reader.QueryRowContext(t.Context(), query).Scan(&port, &positioned); err != nil {
		t.Fatal(err)
	}
	if port != primary.port || positioned != 1 {
		t.Errorf("the member follows port %d, by GTID: %d", port, positioned)
	}
}

// same checks that both have the same rows.
func same(t *testing.T, one, other *sql.DB) {
	t.Helper()
	var sums [2]string
	for i, db := range []*sql.DB{one, other} {
		const query = "SELECT CONCAT(COUNT(*), ' ', SUM(id), ' ', BIT_XOR(CRC32(id))) FROM shop.orders"
		if err := db.QueryRowContext(t.Context(), query).Scan(&sums[i]); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("the rows are %s, and %s", sums[0], sums[1])
	}
}

// TestADonorCrashesMysqld: the copy breaks off. The member tells the operator which donor it has tried, and copies the primary.
func TestADonorCrashesMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	primary, donor, member := startRealMember(t, ca), startRealMember(t, ca), startRealMember(t, ca)
	primary.leads(t, 1, 0)
	root := primary.open(t, "root", "root's", nil, ca)
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)")
	primary.admits(t, ca, donor)
	donor.follow(t, primary, 1)
	donor.isCopied(t)
	donor.follow(t, primary, 2)
	donor.replicates(t)
	primary.admits(t, ca, member)
	donor.until(t, "the donor has the password", func() bool { return donor.agent.Status().Executed.Contains(primary.agent.Status().Executed) })
	member.until(t, "the member is made", func() bool { return member.agent.Status().Origin == replication.OriginFresh })
	onMember := member.open(t, "root", "root's", nil, ca)
	held := holdCopies(t, donor)
	order := joining(primary, donor, 2)
	order.Donor.Port, order.CopyLimit = held.port, 2<<20
	member.obeys(t, order)
	member.until(t, "it copies the donor", func() bool { return member.agent.Status().CloneProgress != nil })
	if says := member.agent.Status().Message; says != "copies the data of db-2, a replica" {
		t.Errorf("meanwhile it says %q", says)
	}
	var limit int
	if err := onMember.QueryRowContext(t.Context(), "SELECT @@GLOBAL.clone_max_data_bandwidth").Scan(&limit); err != nil || limit != 2 {
		t.Errorf("MySQL limits the copy to %d MiB/s, want 2 (%v)", limit, err)
	}
	donor.crashes(t)
	held.release()
	member.until(t, "it has tried that donor", func() bool { return slices.Equal(member.agent.Status().TriedDonors, []string{"db-2"}) })
	if status := member.agent.Status(); status.Origin != replication.OriginFresh || !strings.Contains(status.Message, "db-2") {
		t.Errorf("the copy has broken off: %s, %s", status.Origin, status.Message)
	}
	alone := order
	alone.Donor, alone.CopyLimit = nil, 0
	member.obeys(t, alone)
	member.isCopied(t)
	alone.Record.Revision++
	member.obeys(t, alone)
	member.replicates(t)
	if status := member.agent.Status(); status.TriedDonors != nil || status.CopiedFrom != "" {
		t.Errorf("it follows its primary, and reports %v and %q", status.TriedDonors, status.CopiedFrom)
	}
	same(t, root, member.open(t, "root", "root's", nil, ca))
}

// TestACopyLetsItsDonorTakeOverMysqld: a donor that is locked for DDL cannot stop its applier. So a member whose copies do that copies no
// replica, and another one's donor becomes the primary at once.
func TestACopyLetsItsDonorTakeOverMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	primary, donor, member := startRealMember(t, ca), startRealMember(t, ca), startRealMember(t, ca)
	primary.leads(t, 1, 0)
	primary.admits(t, ca, donor)
	donor.follow(t, primary, 1)
	donor.isCopied(t)
	donor.follow(t, primary, 2)
	donor.replicates(t)
	primary.admits(t, ca, member)
	donor.until(t, "the donor has the password", func() bool { return donor.agent.Status().Executed.Contains(primary.agent.Status().Executed) })
	member.until(t, "the member is made", func() bool { return member.agent.Status().Origin == replication.OriginFresh })
	root := member.open(t, "root", "root's", nil, ca)
	execute(t, root, "SET GLOBAL clone_block_ddl = ON")
	order := joining(primary, donor, 2)
	order.Donor.Port = holdCopies(t, donor).port
	member.obeys(t, order)
	member.until(t, "it does not copy the donor", func() bool { return len(member.agent.Status().TriedDonors) == 1 })
	if says := member.agent.Status().Message; !strings.Contains(says, "clone_block_ddl") {
		t.Errorf("the member says %q", says)
	}
	execute(t, root, "SET GLOBAL clone_block_ddl = OFF")
	member.until(t, "it copies the donor", func() bool { return member.agent.Status().CloneProgress != nil })
	donor.obeys(t, replication.Assignment{Record: replication.Record{Epoch: 2, Revision: 3, Primary: "db-2"}, Role: replication.RolePrimary})
	donor.until(t, "the donor leads", func() bool { return donor.agent.Status().State == replication.StateWriting })
	if member.agent.Status().CloneProgress == nil {
		t.Error("the copy has ended, so the test does not show that the donor can lead meanwhile")
	}
}
