package agent

// Program is the program of the operator's image that runs in a member's Pod. ProgramPath is its path in the image.
const (
	Program     = "mysql-operator-member"
	ProgramPath = "/" + Program
)

// The subcommands of Program.
const (
	CommandInit    = "init"
	CommandAgent   = "agent"
	CommandVersion = "server-version"
)

// The environment that Program reads.
const (
	EnvPod     = "POD_NAME"
	EnvPodUID  = "POD_UID"
	EnvHost    = "MEMBER_HOST"
	EnvCluster = "CLUSTER_NAME"
	// EnvSettings has the settings that all members share.
	EnvSettings = "MEMBER_SETTINGS"
	// EnvRoot is RootAbsent if the agent must leave root@'%' alone. Otherwise it is not set.
	EnvRoot    = "MEMBER_ROOT"
	RootAbsent = "Absent"
	// EnvMemory is how much memory mysqld may use, in bytes, if that is known. EnvCPU is the same in thousandths of a CPU.
	EnvMemory = "MEMBER_MEMORY"
	EnvCPU    = "MEMBER_CPU"
	// EnvProbeSettings has the settings to check, in the Pod of the Job that checks them.
	EnvProbeSettings = "SERVER_SETTINGS"
)
