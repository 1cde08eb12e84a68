package clone

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// statusFolder is where mysqld keeps its files about a cloned data directory. No file of a donor is there.
const statusFolder = "#clone"

// redoFolderSince is the first release with a folder for the redo log (manual, "Redo Log", innodb_redo_log_capacity).
const redoFolderSince = 80030

// cleanName makes a donor's file name safe: the result cannot leave the data directory.
func cleanName(name string) (string, error) {
	clean := strings.TrimPrefix(name, "./")
	if strings.HasPrefix(clean, "/") {
		return "", &UnsupportedError{File: name, Reason: "it lies outside of the data directory; move the table or tablespace into it (no DATA DIRECTORY, no path in ADD DATAFILE)"}
	}
	if !fs.ValidPath(clean) || clean == "." || strings.ContainsAny(clean, "\\\n") {
		return "", &UnsupportedError{File: name, Reason: "its name leads out of the data directory, or is invalid"}
	}
	if first, _, _ := strings.Cut(clean, "/"); first == statusFolder {
		return "", &UnsupportedError{File: name, Reason: "its name is one that mysqld needs for the copy itself"}
	}
	return clean, nil
}

// redoName is where mysqld of that release expects a redo log file.
func redoName(release, index uint32) string {
	if release < redoFolderSince {
		return fmt.Sprintf("ib_logfile%d", index)
	}
	return fmt.Sprintf("#innodb_redo/#ib_redo%d", index)
}

var releasePattern = regexp.MustCompile(`^(\d{1,2})\.(\d{1,2})\.(\d{1,2})(?:\D|$)`)

// parseRelease encodes a server's version as a number, as MySQL does: 90704 for "9.7.4-2".
func parseRelease(version string) (uint32, error) {
	parts := releasePattern.FindStringSubmatch(version)
	if parts == nil {
		return 0, protocolError("server version %q", version)
	}
	var release uint32
	for _, part := range parts[1:] {
		number, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return 0, protocolError("server version %q", version)
		}
		release = release*100 + uint32(number)
	}
	return release, nil
}
