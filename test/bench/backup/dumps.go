package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// client is one of MySQL's own client programs, in the files of the MySQL image, connected to a cluster.
func (b *bench) client(ctx context.Context, program, service string, arguments ...string) (*exec.Cmd, error) {
	host, err := b.address(ctx, service)
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(b.options.rootfs)
	if err != nil {
		return nil, err
	}
	arguments = append([]string{root, "/usr/bin/" + program, "--no-defaults", "--host=" + host, "--port=3306", "--user=root", "--ssl-mode=REQUIRED", "--default-character-set=utf8mb4"}, arguments...)
	command := exec.CommandContext(ctx, "chroot", arguments...)
	command.Env = []string{"MYSQL_PWD=" + password}
	command.Stderr = os.Stderr
	return command, nil
}

func (b *bench) dumpFile() string { return filepath.Join(b.scratch, "dump.sql.zst") }

// measureMysqldump dumps from the replica, through the compressor that backups use.
func (b *bench) measureMysqldump(ctx context.Context, m *measured) error {
	began := time.Now()
	dump, err := b.client(ctx, "mysqldump", source+"-read", "--single-transaction", "--set-gtid-purged=OFF", "--routines", "--events", "--databases", "bench")
	if err != nil {
		return err
	}
	m.mysqldumpStored, err = compressTo(b.dumpFile(), func(w io.Writer) error {
		dump.Stdout = w
		return dump.Run()
	})
	m.mysqldump = time.Since(began).Seconds()
	return err
}

// measureMysql makes an empty cluster of one and loads that into it.
func (b *bench) measureMysql(ctx context.Context, m *measured) error {
	began := time.Now()
	if err := b.cluster(ctx, "loaded", 1); err != nil {
		return err
	}
	in, err := os.Open(b.dumpFile())
	if err != nil {
		return err
	}
	defer in.Close()
	plain, err := zstd.NewReader(in)
	if err != nil {
		return err
	}
	defer plain.Close()
	if err := b.answers(ctx, "loaded"); err != nil {
		return err
	}
	m.emptyCluster = time.Since(began).Seconds()
	load, err := b.client(ctx, "mysql", "loaded")
	if err != nil {
		return err
	}
	load.Stdin = plain
	if err := load.Run(); err != nil {
		return err
	}
	m.mysqlRestore = time.Since(began).Seconds()
	return errors.Join(b.compare(ctx, m, "loaded"), b.remove(ctx, "loaded"))
}

func (b *bench) answers(ctx context.Context, cluster string) error {
	db, err := b.open(ctx, cluster, cluster)
	if err != nil {
		return err
	}
	return db.Close()
}

// threads is how many connections mydumper and myloader use: their own default.
const threads = 4

// measureMydumper dumps with mydumper, compressed as it does that.
func (b *bench) measureMydumper(ctx context.Context, m *measured) error {
	began := time.Now()
	err := b.parallel(ctx, "mydumper", source+"-read", "--outputdir", filepath.Join(b.scratch, "mydumper"), "--compress", "--database", "bench", "--rows", "200000",
		// A replica's own threads count as queries that have been running for long.
		"--long-query-guard", "86400")
	m.mydumper = time.Since(began).Seconds()
	return err
}

// measureMyloader makes an empty cluster of one and loads that into it.
func (b *bench) measureMyloader(ctx context.Context, m *measured) error {
	began := time.Now()
	if err := b.cluster(ctx, "parallel", 1); err != nil {
		return err
	}
	if err := b.answers(ctx, "parallel"); err != nil {
		return err
	}
	if err := b.parallel(ctx, "myloader", "parallel", "--directory", filepath.Join(b.scratch, "mydumper"), "--enable-binlog"); err != nil {
		return err
	}
	m.myloader = time.Since(began).Seconds()
	return errors.Join(b.compare(ctx, m, "parallel"), b.remove(ctx, "parallel"))
}

func (b *bench) parallel(ctx context.Context, program, service string, arguments ...string) error {
	host, err := b.address(ctx, service)
	if err != nil {
		return err
	}
	arguments = append([]string{"--host", host, "--port", "3306", "--user", "root", "--password", password, "--threads", fmt.Sprint(threads), "--ssl"}, arguments...)
	output, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(output)))
	}
	return nil
}
