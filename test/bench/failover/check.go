package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/mysql-operator/mysql-operator/test/kube"
)

// onMember does something with a member's database, at the address of its Pod.
func (b *bench) onMember(ctx context.Context, member string, do func(context.Context, *sql.DB) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, fmt.Errorf("not within %s", answerLimit))
	defer cancel()
	address, err := b.addressOf(ctx, b.namespace, member)
	if err != nil {
		return err
	}
	db, err := openDB(b.config(address + ":3306"))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := do(ctx, db); err != nil {
		return fmt.Errorf("ask mysqld of %s: %w", member, err)
	}
	return nil
}

func (b *bench) member(ordinal int) string { return fmt.Sprintf("%s-%d", b.cluster, ordinal) }

// allHave checks that a row is on every member.
func (b *bench) allHave(ctx context.Context, id int) error {
	for ordinal := range members {
		err := b.onMember(ctx, b.member(ordinal), func(ctx context.Context, db *sql.DB) error {
			ctx, cancel := context.WithTimeout(ctx, statementLimit)
			defer cancel()
			var found int
			return db.QueryRowContext(ctx, "SELECT id FROM "+table+" WHERE id = ?", id).Scan(&found)
		})
		if err != nil {
			return fmt.Errorf("look for row %d: %w", id, err)
		}
	}
	return nil
}

// checkLost looks on the primary for every row that was acknowledged, and returns those that are not there.
func (b *bench) checkLost(ctx context.Context, attempts []attempt) ([]int, error) {
	primary, _, err := b.record(ctx)
	if err != nil {
		return nil, err
	}
	present := map[int]bool{}
	err = b.onMember(ctx, primary, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT id FROM "+table)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int
			if err := rows.Scan(&id); err != nil {
				return err
			}
			present[id] = true
		}
		return rows.Err()
	})
	return lost(attempts, present), err
}

// awaitSame waits until all members have the same rows. Replicas may be a moment behind.
func (b *bench) awaitSame(ctx context.Context) error {
	return kube.Wait(ctx, "all members to have the same rows", answerLimit, func(ctx context.Context) (bool, string) {
		found, isSame := make([]string, members), true
		for ordinal := range members {
			err := b.onMember(ctx, b.member(ordinal), func(ctx context.Context, db *sql.DB) error {
				return db.QueryRowContext(ctx, "SELECT CONCAT((SELECT CONCAT(COUNT(*), ' rows, checksum ', COALESCE(SUM(CRC32(CONCAT(id, note))), 0)) FROM "+table+
					"), '; ', (SELECT CONCAT(COUNT(*), ' registers, checksum ', COALESCE(SUM(CRC32(CONCAT(id, ' ', value))), 0)) FROM "+registerTable+"))").Scan(&found[ordinal])
			})
			if err != nil {
				return false, err.Error()
			}
			isSame = isSame && found[ordinal] == found[0]
		}
		return isSame, strings.Join(found, " / ")
	})
}

// makeTables makes what clients write to, and their account.
func makeTables(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errors.New("the tables are not made in time"))
	defer cancel()
	for _, statement := range []string{
		"CREATE DATABASE " + database,
		"CREATE TABLE " + table + " (id INT PRIMARY KEY, note VARCHAR(64) NOT NULL)",
		"CREATE TABLE " + registerTable + " (id INT PRIMARY KEY, value BIGINT NOT NULL)",
		"CREATE USER '" + clientUser + "' IDENTIFIED BY '" + password + "'",
		"GRANT ALL ON " + database + ".* TO '" + clientUser + "'",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
