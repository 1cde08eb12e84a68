package protocol

// Program is the program in the operator's image that the Pods of transfers run. ProgramPath is its path in the image.
const (
	Program     = "mysql-operator-backup"
	ProgramPath = "/" + Program
)

// The subcommands of Program.
const (
	CommandBackup  = "backup"
	CommandRestore = "restore"
	CommandDelete  = "backup-delete"
)

// The flags of the programs.
const (
	FlagNamespace   = "namespace"
	FlagCluster     = "cluster"
	FlagInstance    = "instance"
	FlagUID         = "uid"
	FlagPort        = "port"
	FlagURL         = "url"
	FlagFrom        = "from"
	FlagStoreDir    = "store-dir"
	FlagCredentials = "credentials"
	FlagRecipient   = "recipient-file"
	FlagIdentity    = "identity-file"
	FlagChecksum    = "checksum"
	FlagAdoptOnly   = "adopt-only"
	FlagUnfinished  = "unfinished-only"
	FlagVolume      = "volume"
	FlagSetting     = "server-setting"
	FlagBandwidth   = "bandwidth-limit"
	FlagReport      = "report"
)

// The keys of the encryption Secret.
const (
	KeyRecipient = "recipient"
	KeyIdentity  = "identity"
)

// Host is the name of a transfer's Pod in the cluster's certificate.
func Host(namespace, cluster string) string {
	return "transfer." + cluster + "-pods." + namespace + ".svc"
}
