// Package podenv is what a consumer's Pod and the program in it agree on: names only, so that neither has to know the other.
package podenv

// The environment of a consumer, as the founding document gives it, for images of users as well.
const (
	// Server is the service URL, pulsar://host:6650.
	Server = "PULSAR_SERVER"
	// Topic is the topic to consume or to produce to.
	Topic = "PULSAR_TOPIC"
	// Subscription is the name of the subscription.
	Subscription = "PULSAR_SUBSCRIPTION_NAME"
	// Message is what the producer sends.
	Message = "PULSAR_MESSAGE"
	// Credentials is the folder of the Secret's keys as files; unset if there is no Secret.
	Credentials = "PULSAR_CREDENTIALS" //nolint:gosec // the name of a variable
	// Consumer is the name under which a Pod subscribes: its own.
	Consumer = "PULSAR_CONSUMER_NAME"
)

// The keys of the Secret, which are the files of the folder. Each may be missing.
const (
	KeyToken       = "token"
	KeyAuthority   = "ca.crt"
	KeyCertificate = "tls.crt"
	KeyPrivate     = "tls.key"
)

const (
	// CredentialsDir is where Pods have the folder.
	CredentialsDir = "/etc/pulsar-credentials" //nolint:gosec // the name of a folder
	// HealthPort is where the consumer of the operator's image says whether it is subscribed.
	HealthPort = 8080
	// ReadyPath is the path to ask there.
	ReadyPath = "/readyz"
	// StopSeconds is how long Kubernetes lets a consumer finish what it has in hand.
	StopSeconds = 30
	// Memory is how much a consumer of the operator's image may use, in bytes: about 20 messages of at most 5 MiB, and the program.
	Memory = 256 << 20
	// ConsumeCommand is the subcommand of the operator's image.
	ConsumeCommand = "consume"
)
