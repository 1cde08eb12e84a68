package archive

import "time"

// Format is the version of the archive format that is written. Older ones can be read, newer ones are refused.
const Format = 1

// Product is who writes the archives.
const Product = "mysql-operator"

// Identity says whose backup it is: a MySQLBackupInstance.
type Identity struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Instance  string `json:"instance"`
	// UID is the MySQLBackupInstance's metadata.uid. It alone decides to whom a folder belongs.
	UID string `json:"uid"`
}

// Manifest describes a backup. Whoever finishes a backup fills in what is known of the copy; Writer.Finish fills in Format, Product,
// Backup, Started, Completed, Data.Size, Data.Raw, Compression, Encryption and Parts.
type Manifest struct {
	Format  int      `json:"format"`
	Product string   `json:"product"`
	Backup  Identity `json:"backup"`
	Source  Source   `json:"source"`
	GTIDs   GTIDs    `json:"gtids"`
	// Started is when the archive was begun, Completed when its last part had been stored; in UTC.
	Started   time.Time `json:"started"`
	Completed time.Time `json:"completed"`
	Data      Data      `json:"data"`
	// Compression is "zstd".
	Compression string     `json:"compression"`
	Encryption  Encryption `json:"encryption,omitzero"`
	// Settings are the donor's, by variable name. Who starts the copy needs the same innodb_page_size, lower_case_table_names and
	// innodb_data_file_path; a backup that does not tell one of them is not compared.
	Settings map[string]string `json:"settings,omitempty"`
	// Plugins are those that the donor had loaded and that are no part of mysqld itself.
	Plugins []string `json:"plugins,omitempty"`
	Parts   []Part   `json:"parts"`
	// OperatorVersion is the release that wrote the backup.
	OperatorVersion string `json:"operatorVersion,omitempty"`
}

// Source is the mysqld that was copied.
type Source struct {
	// Member is its name in the cluster, for example my-cluster-1; Host is what it was reached by.
	Member        string `json:"member"`
	Host          string `json:"host,omitempty"`
	ServerUUID    string `json:"serverUUID,omitempty"`
	ServerVersion string `json:"serverVersion"`
	// Primary says that it took writes.
	Primary bool `json:"primary,omitempty"`
}

// GTIDs are the transactions in the copy: all of AtLeast, and none that are not in AtMost.
type GTIDs struct {
	AtLeast string `json:"atLeast"`
	AtMost  string `json:"atMost"`
}

// Data is how much was copied.
type Data struct {
	// Bytes and Files are what the donor sent: see clone.Result. Pages that changed meanwhile are sent twice.
	Bytes int64 `json:"bytes"`
	Files int   `json:"files"`
	// Size is how long all files are together: what they take where they are restored to.
	Size int64 `json:"size"`
	// Raw is the length, in bytes, of the tar stream before compression.
	Raw int64 `json:"raw"`
}

// Encryption says how the parts are encrypted; the zero value says that they are not.
type Encryption struct {
	// Scheme is "age".
	Scheme string `json:"scheme,omitempty"`
	// Recipients are the public keys, each of which has a secret key that decrypts.
	Recipients []string `json:"recipients,omitempty"`
}

// Part is a piece of the archive. Decrypted and concatenated, the parts are one zstd stream.
type Part struct {
	Name string `json:"name"`
	// Size is its length as stored, in bytes.
	Size int64 `json:"size"`
	// SHA256 is the hash of what is stored, in lower-case hexadecimal.
	SHA256 string `json:"sha256"`
	// Chunks is how many zstd frames it has, Raw how many bytes they have when decompressed.
	Chunks int   `json:"chunks"`
	Raw    int64 `json:"raw"`
}

// Stored is how many bytes all parts take at their destination.
func (m Manifest) Stored() int64 {
	var sum int64
	for _, part := range m.Parts {
		sum += part.Size
	}
	return sum
}
