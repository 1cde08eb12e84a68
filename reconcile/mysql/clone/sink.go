package clone

import (
	"crypto/tls"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

// File is one file of the copy.
type File struct {
	// Name is relative to the data directory and slash-separated: "ibdata1", "shop/orders.ibd", "#innodb_redo/#ib_redo0". Copy has checked
	// that it does not leave the directory.
	Name string
	// Size is the size that the donor announced, in bytes. The first Write to a file also gives it this size, filled with zeros. In
	// StageFiles all Writes stay within it. Later ones may go beyond it, and extend the file.
	Size int64
}

// Sink receives a copy in the order in which it must be put together: a later Write over the same bytes wins.
//
// In StageFiles the files come one after the other, none twice, each with ascending offsets and possibly gaps: a tar entry of File.Size is
// enough for each. New files, Rename and Remove come only between stages. A Write has at most 1 MiB.
type Sink interface {
	// Write writes data at offset. The data is valid only during the call. Without data, Write creates the file if necessary, and extends
	// it to at least offset.
	Write(file File, offset int64, data []byte) error
	// Rename moves a file with everything written to it so far. Later Writes use the new name.
	Rename(from, to string) error
	// Remove deletes a file with everything written to it so far.
	Remove(name string) error
}

// Donor is the mysqld from which Copy copies.
type Donor struct {
	Host string
	Port int
	// Account needs BACKUP_ADMIN (manual, "Cloning Remote Data") and logs in with caching_sha2_password.
	Account mysqld.Account
	// TLS is required: the password and the data are never sent in the clear. The donor's certificate is verified for Host.
	TLS *tls.Config
}

// Stage is a part of the copy. The stages come in the order of the constants.
type Stage int

const (
	// StageFiles reads every file from its beginning to its end, while the donor keeps changing them.
	StageFiles Stage = iota + 1
	// StagePages brings the pages that changed during StageFiles.
	StagePages
	// StageRedo brings the redo log written during StagePages. Its end is the moment of the copy.
	StageRedo
	// StageDone means that everything has been written to the Sink.
	StageDone
)

// String returns the stage's name as in MySQL's performance_schema.clone_progress.
func (s Stage) String() string {
	switch s {
	case StageFiles:
		return "FILE COPY"
	case StagePages:
		return "PAGE COPY"
	case StageRedo:
		return "REDO COPY"
	case StageDone:
		return "DONE"
	}
	return "unknown stage"
}

// Observer follows the progress of a copy. All calls come from Copy's goroutine. Every function may be nil.
type Observer struct {
	// Estimated receives the estimated size of the whole copy, and every better estimate.
	Estimated func(bytes int64)
	// Stage is called before a stage begins. An error ends the copy. The donor waits for it for up to half an hour.
	Stage func(Stage) error
	// MomentPassed is called as soon as the moment of the copy has passed. This moment lies between Stage(StageRedo) and Fixed. Everything
	// that was committed before Stage(StageRedo) is in the copy, and nothing that was committed after Fixed. An error ends the copy.
	MomentPassed func() error
}

// Result is what a manifest of the copy needs.
type Result struct {
	// ServerVersion is @@version of the donor. A release that MySQL's upgrade rules allow after it can start on the copy.
	ServerVersion string
	// ServerUUID is the donor's @@server_uuid.
	ServerUUID string
	// Files is the number of files in the copy. Bytes is the number of bytes written to the Sink.
	Files int
	Bytes int64
	// Plugins, Collations and Settings are those that the donor declared: the mysqld that starts on the copy needs them, too. Settings has
	// innodb_page_size, innodb_data_file_path, lower_case_table_names and others by variable name.
	Plugins    []Plugin
	Collations []string
	Settings   map[string]string
}

// Plugin is a plugin that the donor had loaded; Library is empty for those that are part of mysqld.
type Plugin struct{ Name, Library string }
