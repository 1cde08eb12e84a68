package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// filesEvery is the shortest time between two counts of files. After a count that takes long, the agent waits filesPause times as long.
	filesEvery = time.Minute
	filesPause = 20
	// mostFiles limits how many directory entries are read.
	mostFiles = 100_000
	// filesAtOnce is how many of them are in memory at once.
	filesAtOnce = 1000
)

// fileKind is the purpose of a file in the data directory.
type fileKind string

const (
	filesBinaryLog fileKind = "binary_log"
	filesRelayLog  fileKind = "relay_log"
	filesRedoLog   fileKind = "redo_log"
	filesUndo      fileKind = "undo"
	filesTemporary fileKind = "temporary"
	filesData      fileKind = "data"
)

func fileKinds() []fileKind {
	return []fileKind{filesBinaryLog, filesRelayLog, filesRedoLog, filesUndo, filesTemporary, filesData}
}

// kindOf returns the purpose of a file by its name (manual, "The MySQL Data Directory", "Redo Log", "Undo Tablespaces", "Temporary
// Tablespaces", "Online DDL Space Requirements"). folder is the file's folder in the data directory, empty for the data directory itself.
func kindOf(folder, name string) fileKind {
	if folder != "" {
		switch {
		case folder == "#innodb_redo":
			return filesRedoLog
		case folder == "#innodb_temp", strings.HasPrefix(name, "#sql"):
			return filesTemporary
		}
		return filesData
	}
	switch {
	case strings.HasPrefix(name, binaryLog+"."):
		return filesBinaryLog
	case strings.HasPrefix(name, relayLog+"."):
		return filesRelayLog
	case strings.HasPrefix(name, "ib_logfile"):
		return filesRedoLog
	case strings.HasPrefix(name, "undo_"), strings.HasSuffix(name, ".ibu"):
		return filesUndo
	case strings.HasPrefix(name, "ibtmp"):
		return filesTemporary
	}
	return filesData
}

// relayLog begins the names of the relay log's files (relay_log).
const relayLog = "relay"

// errTooManyFiles reports that there are more files than the limit.
var errTooManyFiles = errors.New("too many files")

// usage adds up the space that files of the data directory take on the volume. It follows no link, goes only as deep as MySQL makes
// folders, and reads at most most entries. If there are more, the size of the databases' folders is unknown.
func (l Layout) usage(most int) (map[fileKind]int64, error) {
	counted := fileCount{left: most, bytes: map[fileKind]int64{}}
	for _, kind := range fileKinds() {
		counted.bytes[kind] = 0
	}
	if err := counted.add(l.DataDir(), ""); err != nil {
		return nil, fmt.Errorf("count the files in %s: %w", l.DataDir(), err)
	}
	slices.Sort(counted.folders) // InnoDB's folders, whose names begin with #, come first: they have few files
	for _, folder := range counted.folders {
		err := counted.add(filepath.Join(l.DataDir(), folder), folder)
		if errors.Is(err, errTooManyFiles) {
			delete(counted.bytes, filesData)
			delete(counted.bytes, filesTemporary)
			return counted.bytes, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("count the files in %s: %w", folder, err)
		}
	}
	return counted.bytes, nil
}

// fileCount is a count in progress.
type fileCount struct {
	left    int
	bytes   map[fileKind]int64
	folders []string
}

// add counts the files of one folder. In the data directory itself, whose name is empty, it also collects the folders.
func (c *fileCount) add(path, name string) error {
	folder, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer folder.Close()
	for {
		entries, err := folder.ReadDir(filesAtOnce)
		for _, entry := range entries {
			if c.left == 0 {
				return errTooManyFiles
			}
			c.left--
			if err := c.entry(name, entry); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *fileCount) entry(folder string, entry fs.DirEntry) error {
	if entry.IsDir() && folder == "" {
		c.folders = append(c.folders, entry.Name())
		return nil
	}
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // mysqld removed it meanwhile
	}
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		c.bytes[kindOf(folder, entry.Name())] += taken(info)
	}
	return nil
}

// watchFiles counts files until the context ends. It runs concurrently with everything else: with very many files, or on storage that
// hangs, a count may take long.
func (a *Agent) watchFiles(ctx context.Context) {
	told := ""
	for {
		began, problem := time.Now(), ""
		files, err := a.layout.usage(mostFiles)
		if err != nil {
			problem = err.Error()
		}
		if problem != told && problem != "" {
			a.log.Info("cannot measure what uses the volume's space, will try again", "error", problem)
		}
		told = problem
		a.mu.Lock()
		a.measured.files = files
		a.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(filesEvery, filesPause*time.Since(began))):
		}
	}
}
