package archive

import "time"

// Format is the version of the archive format that this release writes. It reads older versions and refuses newer ones.
const Format = 1

// Product is the name of the program that writes the archives.
const Product = "mysql-operator"

// Identity names the owner of a backup: a MySQLBackupInstance.
type Identity struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Instance  string `json:"instance"`
	// UID is the MySQLBackupInstance's metadata.uid. Only the UID decides which instance a folder belongs to.
	UID string `json:"uid"`
}

// Manifest describes a backup. The caller of Writer.Finish fills in what is known of the copy. Finish fills in Format, Product, Backup,
// Started, Completed, Data.Size, Data.Raw, Compression, Encryption and Parts.
type Manifest struct {
	Format  int      `json:"format"`
	Product string   `json:"product"`
	Backup  Identity `json:"backup"`
	Source  Source   `json:"source"`
	GTIDs   GTIDs    `json:"gtids"`
	// Started is when the archive was started, Completed when its last part had been stored; in UTC.
	Started   time.Time `json:"started"`
	Completed time.Time `json:"completed"`
	Data      Data      `json:"data"`
	// Compression is "zstd".
	Compression string     `json:"compression"`
	Encryption  Encryption `json:"encryption,omitzero"`
	// Settings are the donor's, by variable name. The mysqld that starts on the copy needs the same innodb_page_size,
	// lower_case_table_names and innodb_data_file_path. A setting that the backup does not have is not compared.
	Settings map[string]string `json:"settings,omitempty"`
	// Plugins are those that the donor had loaded and that are not part of mysqld itself.
	Plugins []string `json:"plugins,omitempty"`
	Parts   []Part   `json:"parts"`
	// OperatorVersion is the release that wrote the backup.
	OperatorVersion string `json:"operatorVersion,omitempty"`
}

// Source is the mysqld that was copied.
type Source struct {
	// Member is its name in the cluster, for example my-cluster-1. Host is the address it was reached at.
	Member        string `json:"member"`
	Host          string `json:"host,omitempty"`
	ServerUUID    string `json:"serverUUID,omitempty"`
	ServerVersion string `json:"serverVersion"`
	// Primary reports whether the member was the primary.
	Primary bool `json:"primary,omitempty"`
}

// GTIDs are the transactions in the copy: all of AtLeast, and none that are not in AtMost.
type GTIDs struct {
	AtLeast string `json:"atLeast"`
	AtMost  string `json:"atMost"`
}

// Data describes the amount of data.
type Data struct {
	// Bytes and Files count what the donor sent: see clone.Result. The donor sends a page again if it changes meanwhile.
	Bytes int64 `json:"bytes"`
	Files int   `json:"files"`
	// Size is the total length of all files in bytes: the space they need after a restore.
	Size int64 `json:"size"`
	// Raw is the length, in bytes, of the tar stream before compression.
	Raw int64 `json:"raw"`
}

// Encryption describes how the parts are encrypted. The zero value means that they are not encrypted.
type Encryption struct {
	// Scheme is "age".
	Scheme string `json:"scheme,omitempty"`
	// Recipients are the public keys. The secret key of any one of them decrypts the backup.
	Recipients []string `json:"recipients,omitempty"`
}

// Part is a piece of the archive. Decrypted and concatenated, the parts are one zstd stream.
type Part struct {
	Name string `json:"name"`
	// Size is the length of the stored object in bytes.
	Size int64 `json:"size"`
	// SHA256 is the hash of the stored object, in lower-case hexadecimal.
	SHA256 string `json:"sha256"`
	// Chunks is the number of zstd frames in the part. Raw is their number of bytes after decompression.
	Chunks int   `json:"chunks"`
	Raw    int64 `json:"raw"`
}

// Stored returns the number of bytes that all parts take at their destination.
func (m Manifest) Stored() int64 {
	var sum int64
	for _, part := range m.Parts {
		sum += part.Size
	}
	return sum
}
