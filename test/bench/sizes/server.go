package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/machine"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
)

// group is the control group that a mysqld is in.
const group = "/mysql-operator-bench-sizes"

// shared are the settings that commits rest on, and what a mysqld beside others needs.
const shared = `mysqlx = OFF
skip_networking = ON
log_bin = binlog
gtid_mode = ON
enforce_gtid_consistency = ON
sync_binlog = 1
innodb_flush_log_at_trx_commit = 1
binlog_expire_logs_seconds = 60
secure_file_priv = NULL
plugin_load_add = semisync_source.so
plugin_load_add = semisync_replica.so
plugin_load_add = mysql_clone.so
`

// server is one mysqld in a control group, on a volume of its own.
type server struct {
	folder, rootfs, memory string
	settings               sizing.Settings
	process                *exec.Cmd
	// ended is closed once mysqld has ended.
	ended chan struct{}
}

// newServer makes volume, control group and data directory.
func newServer(ctx context.Context, rootfs string, at place, settings sizing.Settings) (s *server, err error) {
	rootfs, err = filepath.Abs(rootfs)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "sizes")
	if err != nil {
		return nil, err
	}
	s = &server{folder: folder, rootfs: rootfs, settings: settings}
	if err := s.prepare(ctx, at); err != nil {
		return nil, errors.Join(err, s.remove(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *server) prepare(ctx context.Context, at place) error {
	if err := os.Mkdir(s.volume(), 0o755); err != nil {
		return err
	}
	image := filepath.Join(s.folder, "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, at.volume); err != nil {
		return err
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, s.volume()}} {
		if output, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command[0], err, output)
		}
	}
	if err := s.limit(at.memory); err != nil {
		return err
	}
	config := s.settings.Config() + shared + "datadir = " + filepath.Join(s.volume(), "data") + "\nsocket = " + s.socket() +
		"\npid_file = " + filepath.Join(s.folder, "pid") + "\nlog_error = " + s.log() + "\n"
	if err := os.WriteFile(s.config(), []byte(config), 0o600); err != nil {
		return err
	}
	if output, err := s.mysqld(ctx, "--initialize-insecure").CombinedOutput(); err != nil {
		return fmt.Errorf("initialize: %w: %s%s", err, output, s.messages())
	}
	return nil
}

func (s *server) volume() string { return filepath.Join(s.folder, "volume") }
func (s *server) socket() string { return filepath.Join(s.folder, "s") }
func (s *server) config() string { return filepath.Join(s.folder, "my.cnf") }
func (s *server) log() string    { return filepath.Join(s.folder, "error.log") }

func (s *server) messages() string {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// limit makes the control group and bounds its memory.
func (s *server) limit(memory int64) error {
	if err := machine.EnsureCgroup(group); err != nil {
		return err
	}
	file := "memory.max"
	s.memory = "/sys/fs/cgroup" + group
	if machine.CgroupV1() {
		file, s.memory = "memory.limit_in_bytes", "/sys/fs/cgroup/memory"+group
	}
	return os.WriteFile(filepath.Join(s.memory, file), []byte(strconv.FormatInt(memory, 10)), 0o600)
}

// kills is how many processes the kernel has killed in the group for want of memory.
func (s *server) kills() (int, error) {
	file := "memory.events"
	if machine.CgroupV1() {
		file = "memory.oom_control"
	}
	text, err := os.ReadFile(filepath.Join(s.memory, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), " "); found && name == "oom_kill" {
			return strconv.Atoi(value)
		}
	}
	return 0, fmt.Errorf("%s does not say how many were killed", file)
}

// mysqld is a command with the loader and the libraries of the root file system. It runs in the control group from its first instruction
// on.
func (s *server) mysqld(ctx context.Context, arguments ...string) *exec.Cmd {
	libraries := s.rootfs + "/usr/lib/x86_64-linux-gnu:" + s.rootfs + "/usr/lib/mysql/private:" + s.rootfs + "/usr/lib64"
	all := append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, s.memory,
		s.rootfs + "/usr/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, s.rootfs + "/usr/sbin/mysqld", "--defaults-file=" + s.config(), "--user=root",
		"--basedir=" + s.rootfs + "/usr", "--plugin-dir=" + s.rootfs + "/usr/lib/mysql/plugin", "--lc-messages-dir=" + s.rootfs + "/usr/share/mysql",
		"--character-sets-dir=" + s.rootfs + "/usr/share/mysql/charsets"}, arguments...)
	return exec.CommandContext(ctx, "sh", all...)
}

func (s *server) start(ctx context.Context) error {
	s.process = s.mysqld(context.WithoutCancel(ctx))
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.ended = make(chan struct{})
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("start mysqld: %w", err)
	}
	go func() {
		defer close(s.ended)
		_ = s.process.Wait() // its log says how
	}()
	return nil
}

// anonymous is how much memory mysqld has that is no file's, in bytes; zero once it has ended.
func (s *server) anonymous() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if size, found := strings.CutPrefix(line, "RssAnon:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// remove ends mysqld and takes everything away.
func (s *server) remove(ctx context.Context) error {
	var failed []error
	if s.process != nil {
		_ = s.process.Process.Kill() // it may have ended
		select {
		case <-s.ended:
		case <-time.After(time.Minute):
			failed = append(failed, errors.New("mysqld did not end in a minute"))
		}
	}
	if output, err := exec.CommandContext(ctx, "umount", s.volume()).CombinedOutput(); err != nil {
		failed = append(failed, fmt.Errorf("umount: %w: %s", err, output))
	}
	failed = append(failed, machine.RemoveCgroup(ctx, group), os.RemoveAll(s.folder))
	return errors.Join(failed...)
}
