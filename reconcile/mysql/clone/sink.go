package clone

import (
	"crypto/tls"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

// File is one file of the copy.
type File struct {
	// Name is relative to the data directory and slash-separated: "ibdata1", "shop/orders.ibd", "#innodb_redo/#ib_redo0". It has
	// been checked: it does not leave the directory.
	Name string
	// Size is what the donor announced, in bytes. A file is so long, all zeros, when it is written to for the first time. In
	// StageFiles all Writes stay within; later ones may go beyond it, then the file grows.
	Size int64
}

// Sink takes a copy in the order in which it has to be put together: a later Write over the same bytes wins.
//
// In StageFiles the files come one after the other, none twice, each with ascending offsets and perhaps gaps: a tar entry of
// File.Size for each will do. New files, Rename and Remove come only between stages. At most 1 MiB is written at once.
type Sink interface {
	// Write puts data at offset. The data is only valid during the call. Without data, the file comes to exist and to be at least
	// offset long.
	Write(file File, offset int64, data []byte) error
	// Rename moves a file with what was written to it so far. Later Writes use the new name.
	Rename(from, to string) error
	// Remove deletes a file with what was written to it so far.
	Remove(name string) error
}

// Donor is the mysqld to copy from.
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
	// StageFiles reads every file from its beginning to its end, while the donor goes on changing them.
	StageFiles Stage = iota + 1
	// StagePages brings the pages that changed during StageFiles.
	StagePages
	// StageRedo brings the redo log written during StagePages; where it ends is the moment that the copy is of.
	StageRedo
	// StageDone means that everything has been written to the Sink.
	StageDone
)

// String is the stage's name as MySQL's performance_schema.clone_progress has it.
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

// Observer hears how a copy goes; all calls come from Copy's goroutine. Every function may be nil.
type Observer struct {
	// Estimated is told how many bytes the whole copy will have, again with every better figure.
	Estimated func(bytes int64)
	// Stage is called before a stage begins; an error ends the copy. The donor waits for up to half an hour meanwhile.
	Stage func(Stage) error
	// Fixed is called as soon as the moment that the copy is of has passed: it lies between Stage(StageRedo) and this. All that was
	// committed before the one is in the copy, nothing that was committed after the other. An error ends the copy.
	Fixed func() error
}

// Result is what a manifest of the copy should know.
type Result struct {
	// ServerVersion is @@version of the donor; the copy can be started by what MySQL's upgrade rules let follow it.
	ServerVersion string
	// ServerUUID is the donor's @@server_uuid.
	ServerUUID string
	// Files is how many files the copy has, Bytes how many bytes were written to the Sink.
	Files int
	Bytes int64
	// Plugins, Collations and Settings are those that the donor declared: who starts the copy needs them, too. Settings hold
	// innodb_page_size, innodb_data_file_path, lower_case_table_names and others by variable name.
	Plugins    []Plugin
	Collations []string
	Settings   map[string]string
}

// Plugin is a plugin that the donor had loaded; Library is empty for those that are part of mysqld.
type Plugin struct{ Name, Library string }
