package schema

import (
	"fmt"
	"strings"
	"testing"

	pulsarv1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

// seedConsumer has the four fields of the kind in the founding document, with the values of its walk-through, and no labels.
const seedConsumer = `
apiVersion: pulsar.pulsarconsumer.krvarma.com/v1
kind: PulsarConsumer
metadata:
  name: pulsarconsumer-sample
spec:
  serverAddress: pulsar://localhost:6650
  topic: my-topic
  subscriptionName: my-subscription
  replicas: 3
`

func TestSeedConsumerApplies(t *testing.T) {
	t.Parallel()
	stored, err := newAPIServer(t, "PulsarConsumer").create(seedConsumer)
	if err != nil {
		t.Fatalf("the seed's manifest is refused: %v", err)
	}
	typed := pulsarv1.PulsarConsumer{}
	if err := DecodeStrict(stored, &typed); err != nil {
		t.Fatal(err)
	}
	want := pulsarv1.PulsarConsumerSpec{ServerAddress: "pulsar://localhost:6650", Topic: "my-topic", SubscriptionName: "my-subscription", Replicas: 3}
	if typed.Spec != want {
		t.Errorf("read as %+v", typed.Spec)
	}
}

// TestConsumerDocuments lists what is refused, and with which message. No message means that it is accepted.
func TestConsumerDocuments(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "PulsarConsumer")
	whole := map[string]string{"serverAddress": "pulsar://a:6650", "topic": "t", "subscriptionName": "s", "replicas": "1"}
	for story, test := range map[string]struct {
		// field is set to value, or left out if value is empty; the other fields are those of whole.
		field, value string
		told         []string
	}{
		"no server address":              {"serverAddress", "", []string{"spec.serverAddress: Required value"}},
		"no topic":                       {"topic", "", []string{"spec.topic: Required value"}},
		"no subscription":                {"subscriptionName", "", []string{"spec.subscriptionName: Required value"}},
		"no replicas":                    {"replicas", "", []string{"spec.replicas: Required value"}},
		"an empty server address":        {"serverAddress", `""`, []string{"spec.serverAddress"}},
		"an empty topic":                 {"topic", `""`, []string{"spec.topic"}},
		"an empty subscription":          {"subscriptionName", `""`, []string{"spec.subscriptionName"}},
		"TLS":                            {"serverAddress", "pulsar+ssl://a.example.com:6651", nil},
		"no port":                        {"serverAddress", "pulsar://a", nil},
		"several servers":                {"serverAddress", "'pulsar://a:6650,b:6650'", nil},
		"an IPv6 address":                {"serverAddress", "'pulsar://[::1]:6650'", nil},
		"a server without scheme":        {"serverAddress", "a:6650", []string{"spec.serverAddress must be a URL", "pulsar://broker:6650"}},
		"the admin API":                  {"serverAddress", "http://a:8080", []string{"spec.serverAddress must be a URL"}},
		"credentials in the URL":         {"serverAddress", "pulsar://user:secret@a:6650", []string{"spec.serverAddress must be a URL"}},
		"a topic with its namespace":     {"topic", "public/default/t", nil},
		"a topic as a URL":               {"topic", "persistent://public/default/t", nil},
		"a topic that is not kept":       {"topic", "non-persistent://public/default/t", nil},
		"a topic of an old cluster":      {"topic", "persistent://tenant/cluster/namespace/t", nil},
		"half of a namespace":            {"topic", "default/t", []string{"spec.topic must be a topic's name"}},
		"a topic of another sort":        {"topic", "kafka://a/b/t", []string{"spec.topic must be a topic's name"}},
		"a topic with a space":           {"topic", "'my topic'", []string{"spec.topic must be a topic's name"}},
		"a subscription with a slash":    {"subscriptionName", "a/b", []string{"spec.subscriptionName must contain neither"}},
		"0 replicas":                     {"replicas", "0", nil},
		"fewer replicas than 0":          {"replicas", "-1", []string{"spec.replicas"}},
		"too many":                       {"replicas", "1001", []string{"spec.replicas"}},
		"an image":                       {"image", "registry.example.com/my-consumer:v1", nil},
		"an image with a space":          {"image", "'a b'", []string{"spec.image must be the name of an image"}},
		"a secret":                       {"secret", "pulsar-credentials", nil},
		"a secret that cannot be":        {"secret", "A_B", []string{"spec.secret must be the name of a Secret"}},
		"an unknown field":               {"servers", "a", []string{"servers"}},
		"a subscription with any letter": {"subscriptionName", "Zähler:1", nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			fields := []string{}
			for name, value := range whole {
				if name != test.field {
					fields = append(fields, name+": "+value)
				}
			}
			if test.value != "" {
				fields = append(fields, test.field+": "+test.value)
			}
			_, err := server.create(consumer("c", strings.Join(fields, ", ")))
			wantRefusal(t, err, test.told...)
		})
	}
}

func TestConsumerWithALongName(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "PulsarConsumer")
	spec := "serverAddress: 'pulsar://a:6650', topic: t, subscriptionName: s, replicas: 1"
	_, err := server.create(consumer(strings.Repeat("n", 63), spec))
	wantRefusal(t, err)
	_, err = server.create(consumer(strings.Repeat("n", 64), spec))
	wantRefusal(t, err, "metadata.name must be at most 63 characters")
}

func consumer(name, spec string) string {
	return fmt.Sprintf("apiVersion: pulsar.pulsarconsumer.krvarma.com/v1\nkind: PulsarConsumer\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
}
