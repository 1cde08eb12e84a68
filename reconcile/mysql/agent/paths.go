package agent

import "path"

// Paths in a member's Pod. Only the volume outlives the Pod.
const (
	VolumeDir   = "/var/lib/mysql-operator"
	RunDir      = "/run/mysql-operator"
	TempDir     = "/tmp"
	TLSDir      = "/etc/mysql-operator/tls"
	AccountsDir = "/etc/mysql-operator/accounts"
	RootDir     = "/etc/mysql-operator/root"

	// PasswordKey is the key of the user's Secret for the root password.
	PasswordKey = "password"

	// Port is where the agent listens, for probes, metrics and the operator.
	Port = 9443
	// OperatorName is the common name of the operator's client certificate.
	OperatorName = "mysql-operator"
)

// Layout is where one member's files are. Tests use other folders than a Pod.
type Layout struct{ Volume, Run, Temp, TLS, Accounts, Root string }

// PodLayout is the layout inside a Pod.
func PodLayout() Layout {
	return Layout{Volume: VolumeDir, Run: RunDir, Temp: TempDir, TLS: TLSDir, Accounts: AccountsDir, Root: RootDir}
}

// DataDir is a separate folder in the volume: the volume's root may contain lost+found, and the agent's state must survive CLONE.
func (l Layout) DataDir() string { return path.Join(l.Volume, "data") }

// RestoringDir is the folder to which a backup is restored before it becomes the data directory.
func (l Layout) RestoringDir() string    { return path.Join(l.Volume, "data.restoring") }
func (l Layout) stateFile() string       { return path.Join(l.Volume, "member.json") }
func (l Layout) ballast() string         { return path.Join(l.Volume, "member.ballast") }
func (l Layout) probeFile() string       { return path.Join(l.Volume, "member.probe") }
func (l Layout) serverConfig() string    { return path.Join(l.Run, "my.cnf") }
func (l Layout) initConfig() string      { return path.Join(l.Run, "initialize.cnf") }
func (l Layout) bootstrapFile() string   { return path.Join(l.Run, "bootstrap.sql") }
func (l Layout) passwordsFile() string   { return path.Join(l.Run, "passwords.json") }
func (l Layout) socket() string          { return path.Join(l.Run, "mysqld.sock") }
func (l Layout) caFile() string          { return path.Join(l.TLS, "ca.crt") }
func (l Layout) certFile() string        { return path.Join(l.TLS, "tls.crt") }
func (l Layout) keyFile() string         { return path.Join(l.TLS, "tls.key") }
func (l Layout) rootPassword() string    { return path.Join(l.Root, PasswordKey) }
func (l Layout) account(u string) string { return path.Join(l.Accounts, u) }

// ServerConfigPath and InitConfigPath are the configuration files with which the Pod's containers start mysqld.
const (
	ServerConfigPath = RunDir + "/my.cnf"
	InitConfigPath   = RunDir + "/initialize.cnf"
)
