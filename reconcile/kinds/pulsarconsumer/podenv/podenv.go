// Package podenv has the names that a consumer's Pod and its program share, so that neither imports the other.
package podenv

// The environment of a consumer, as in the founding document; users' images get it too.
const (
	// Server is the service URL, pulsar://host:6650.
	Server = "PULSAR_SERVER"
	// Topic is the topic to consume or to produce to.
	Topic = "PULSAR_TOPIC"
	// Subscription is the name of the subscription.
	Subscription = "PULSAR_SUBSCRIPTION_NAME"
	// Message is the message that the producer sends.
	Message = "PULSAR_MESSAGE"
	// Credentials is the folder with the Secret's keys as files; unset without a Secret.
	Credentials = "PULSAR_CREDENTIALS" //nolint:gosec // the name of a variable
	// Consumer is the name under which a Pod subscribes: the Pod's name.
	Consumer = "PULSAR_CONSUMER_NAME"
)

// The keys of the Secret, which are the files of the folder. Each is optional.
const (
	KeyToken       = "token"
	KeyAuthority   = "ca.crt"
	KeyCertificate = "tls.crt"
	KeyPrivate     = "tls.key"
)

const (
	// CredentialsDir is the folder in the Pods.
	CredentialsDir = "/etc/pulsar-credentials" //nolint:gosec // the name of a folder
	// HealthPort is where the consumer of the operator's image reports whether it is subscribed.
	HealthPort = 8080
	// ReadyPath is the path of that report.
	ReadyPath = "/readyz"
	// StopSeconds is how long Kubernetes gives a consumer to finish after SIGTERM.
	StopSeconds = 30
	// Memory is the memory limit of a consumer of the operator's image, in bytes: about 20 messages of at most 5 MiB, and the program.
	Memory = 256 << 20
	// ConsumeCommand is the subcommand of the operator's image.
	ConsumeCommand = "consume"
)
