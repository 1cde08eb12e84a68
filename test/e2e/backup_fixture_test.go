package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// backupLimit bounds one backup of a test's small data, retries included.
const backupLimit = 4 * time.Minute

// namespaceLimit bounds the end of a namespace with members: half of their grace period, and some.
const namespaceLimit = 5 * time.Minute

// seed fills a database with tables of several kinds, about as many MiB as asked for.
func (p *place) seed(db *sql.DB, mebibytes int) {
	p.t.Helper()
	// Nodes hear of a Service's new member a moment after the cluster is Ready.
	p.waitValue(db, "SELECT 1", "1", answerLimit)
	p.exec(db,
		"CREATE DATABASE shop CHARACTER SET utf8mb4",
		"CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, body VARBINARY(1000) NOT NULL, at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6), KEY (at))",
		"CREATE TABLE shop.parts (id INT, region INT, name VARCHAR(40), PRIMARY KEY (id, region)) PARTITION BY HASH (region) PARTITIONS 4",
		"INSERT INTO shop.parts VALUES (1, 1, 'bolt'), (2, 2, 'nut'), (3, 3, 'schräubchen'), (4, 4, '螺丝')",
		"CREATE TABLE shop.notes (id INT PRIMARY KEY, text LONGTEXT, document JSON, FULLTEXT (text)) ROW_FORMAT = COMPRESSED",
		`INSERT INTO shop.notes VALUES (1, REPEAT('long words ', 20000), '{"a": [1, 2, {"b": null}]}')`,
		"CREATE VIEW shop.names AS SELECT name FROM shop.parts",
		"CREATE DATABASE empty_one",
		"CREATE USER 'clerk'@'%' IDENTIFIED BY 'of the shop'",
		"GRANT SELECT ON shop.* TO 'clerk'@'%'",
		"INSERT INTO shop.orders (body) VALUES (RANDOM_BYTES(950))",
	)
	for rows := 1; rows < mebibytes*1024; rows *= 2 {
		p.exec(db, fmt.Sprintf("INSERT INTO shop.orders (body) SELECT CONCAT(RANDOM_BYTES(500), REPEAT('x', 450)) FROM shop.orders LIMIT %d", mebibytes*1024-rows))
	}
}

// checksums are those of every table that people made, but for what a writer still changes.
func (p *place) checksums(db *sql.DB) map[string]string {
	p.t.Helper()
	ctx, cancel := p.context(time.Minute)
	defer cancel()
	rows, err := db.QueryContext(ctx, "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema', 'test')")
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			p.t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		p.t.Fatal(err)
	}
	sums := map[string]string{}
	for _, name := range names {
		var table, sum string
		if err := db.QueryRowContext(ctx, "CHECKSUM TABLE "+name).Scan(&table, &sum); err != nil {
			p.t.Fatalf("checksum of %s: %v", name, err)
		}
		sums[name] = sum
	}
	return sums
}

// sameTables compares checksums, and has every table checked.
func (p *place) sameTables(db *sql.DB, want map[string]string) {
	p.t.Helper()
	if got := p.checksums(db); !maps.Equal(got, want) {
		p.t.Errorf("tables differ:\n got %v\nwant %v", got, want)
	}
	ctx, cancel := p.context(time.Minute)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		var table, operation, kind, text string
		if err := db.QueryRowContext(ctx, "CHECK TABLE "+name).Scan(&table, &operation, &kind, &text); err != nil || text != "OK" {
			p.t.Errorf("CHECK TABLE %s: %s %s %v", name, kind, text, err)
		}
	}
}

// instance is the manifest of a backup by hand, with further lines of spec.
func (p *place) instance(name string, lines ...string) string {
	text := fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLBackupInstance\nmetadata:\n  name: %s\nspec:\n  cluster: %s\n", name, p.cluster)
	for _, line := range lines {
		text += "  " + line + "\n"
	}
	return text
}

// backupField reads a field of a backup instance.
func (p *place) backupField(ctx context.Context, name, path string) string {
	text, err := p.objects.Field(ctx, mysql("mysqlbackupinstances"), p.namespace, name, path)
	if err != nil {
		return err.Error()
	}
	return text
}

const backupState = `{.status.phase} {.status.conditions[?(@.type=="Ready")].reason} {.status.progress.summary} attempts={.status.attempts} {.status.conditions[?(@.type=="Ready")].message}`

// waitBackup waits until a backup's phase and reason begin with what is wanted.
func (p *place) waitBackup(name, want string, limit time.Duration) string {
	p.t.Helper()
	last := ""
	p.wait("backup "+name+" to be "+want, limit, func(ctx context.Context) (bool, string) {
		last = p.backupField(ctx, name, backupState)
		return strings.HasPrefix(last, want), last
	})
	return last
}

// copied waits until a running backup is at least so far, and not at its end: the moment for a fault.
func (p *place) copied(name string, percent int) {
	p.t.Helper()
	p.wait(fmt.Sprintf("backup %s to be %d%% through", name, percent), changeLimit, func(ctx context.Context) (bool, string) {
		state := p.backupField(ctx, name, "{.status.phase} {.status.progress.percent}")
		var phase string
		var now int
		_, err := fmt.Sscan(state, &phase, &now)
		return err == nil && phase == "Started" && now >= percent && now < 90, state
	})
}

// restored waits until the cluster's data is on its volume. Its members take as long again.
func (p *place) restored() {
	p.t.Helper()
	p.wait("the restore to be complete", backupLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, "{.status.restore.phase}")
		return seen == "Completed", seen
	})
}

// membersGone waits until no StatefulSet and no Pod of members is left.
func (p *place) membersGone() {
	p.t.Helper()
	p.wait("the members to be gone", changeLimit, func(ctx context.Context) (bool, string) {
		left := ""
		for _, of := range []schema.GroupVersionResource{core("pods"), appsv1.SchemeGroupVersion.WithResource("statefulsets")} {
			names, err := p.objects.Fields(ctx, of, p.namespace, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=mysql"}, "{.items[*].metadata.name}")
			if err != nil {
				return false, err.Error()
			}
			left += names
		}
		return left == "", left
	})
}

// loseCluster deletes the cluster and its members' volumes: only backups are left of it.
func (p *place) loseCluster() {
	p.t.Helper()
	p.run("delete", "mysqlcluster", p.cluster, "-n", p.namespace)
	p.membersGone()
	p.run("delete", "pvc", "-n", p.namespace, "-l", "app.kubernetes.io/name=mysql,app.kubernetes.io/instance="+p.cluster)
}
