package schema

import (
	"fmt"
	"testing"

	schedulev1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
)

// seedTDSet is the founding document's manifest: it must always apply.
const seedTDSet = `
apiVersion: schedule.rs/v1 # see we have added new api group v
kind: TDSet # new kind -> resource
metadata:
  name: tdset-hello-world
  namespace: temp
spec:
  container:
    image: crccheck/hello-world
    port: 8000
  schedulingConfig:
  - startTime: 9 # 24 hour format
    endTime: 17
    replica: 5
  - startTime: 17
    endTime: 19
    replica: 3
  - startTime: 19
    endTime: 0
    replica: 2
  - startTime: 1
    endTime: 7
    replica: 2
  - startTime: 7
    endTime: 9
    replica: 3
  defaultReplica: 3
`

func tdset(name, spec string) string {
	return fmt.Sprintf("apiVersion: schedule.rs/v1\nkind: TDSet\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
}

func TestSeedTDSetApplies(t *testing.T) {
	t.Parallel()
	stored, err := newAPIServer(t, "TDSet").create(seedTDSet)
	if err != nil {
		t.Fatalf("the seed's manifest is refused: %v", err)
	}
	typed := schedulev1.TDSet{}
	if err := DecodeStrict(stored, &typed); err != nil {
		t.Fatal(err)
	}
	spec := typed.Spec
	if spec.Container.Port != 8000 || len(spec.SchedulingConfig) != 5 || spec.SchedulingConfig[2].StartTime != 19 || spec.DefaultReplica != 3 || spec.TimeZone != "UTC" {
		t.Errorf("read as %+v", spec)
	}
}

// TestTDSetDocuments lists what is refused, and with which message. No message means that it is accepted.
func TestTDSetDocuments(t *testing.T) {
	t.Parallel()
	const whole = "container: {image: i, port: 80}, defaultReplica: 1, schedulingConfig: "
	server := newAPIServer(t, "TDSet")
	for story, test := range map[string]struct {
		name, spec string
		told       []string
	}{
		"no interval at all":                {"t", whole + "[]", nil},
		"a night":                           {"t", whole + "[{startTime: 22, endTime: 6, replica: 0}]", nil},
		"until midnight, as the seed says":  {"t", whole + "[{startTime: 19, endTime: 0, replica: 2}]", nil},
		"until midnight, in another way":    {"t", whole + "[{startTime: 19, endTime: 24, replica: 2}]", nil},
		"some days":                         {"t", whole + "[{startTime: 9, endTime: 17, replica: 5, days: [Mon, Fri]}]", nil},
		"no days":                           {"t", whole + "[{startTime: 9, endTime: 17, replica: 5, days: []}]", []string{"spec.schedulingConfig[0].days", "at least 1"}},
		"a day twice":                       {"t", whole + "[{startTime: 9, endTime: 17, replica: 5, days: [Mon, Mon]}]", []string{"spec.schedulingConfig[0].days", "Duplicate"}},
		"an unknown day":                    {"t", whole + "[{startTime: 9, endTime: 17, replica: 5, days: [Someday]}]", []string{"spec.schedulingConfig[0].days[0]", "Mon"}},
		"the hour 24 as the beginning":      {"t", whole + "[{startTime: 24, endTime: 3, replica: 2}]", []string{"spec.schedulingConfig[0].startTime", "23"}},
		"the hour 25":                       {"t", whole + "[{startTime: 9, endTime: 25, replica: 2}]", []string{"spec.schedulingConfig[0].endTime", "24"}},
		"an interval without an end":        {"t", whole + "[{startTime: 9, replica: 2}]", []string{"spec.schedulingConfig[0].endTime", "Required"}},
		"fewer than none":                   {"t", whole + "[{startTime: 9, endTime: 17, replica: -1}]", []string{"spec.schedulingConfig[0].replica"}},
		"without a schedule":                {"t", "container: {image: i, port: 80}, defaultReplica: 1", []string{"spec.schedulingConfig: Required"}},
		"without a default":                 {"t", "container: {image: i, port: 80}, schedulingConfig: []", []string{"spec.defaultReplica: Required"}},
		"without a container":               {"t", "defaultReplica: 1, schedulingConfig: []", []string{"spec.container: Required"}},
		"without a port":                    {"t", "container: {image: i}, defaultReplica: 1, schedulingConfig: []", []string{"spec.container.port: Required"}},
		"an image with a blank":             {"t", "container: {image: 'i i', port: 80}, defaultReplica: 1, schedulingConfig: []", []string{"spec.container.image must be the name"}},
		"by the clocks of a place":          {"t", whole + "[], timeZone: America/Argentina/Buenos_Aires", nil},
		"by an offset":                      {"t", whole + "[], timeZone: '+02:00'", []string{"spec.timeZone must be an IANA name"}},
		"by the machine's time zone":        {"t", whole + "[], timeZone: Local", []string{"spec.timeZone must be an IANA name"}},
		"checked every day":                 {"t", whole + "[], intervalMint: 1440", nil},
		"checked without end":               {"t", whole + "[], intervalMint: 0", []string{"spec.intervalMint"}},
		"held at a number":                  {"t", whole + "[], replicas: 0", nil},
		"with a Service":                    {"t", whole + "[], service: {port: 80}", nil},
		"with a Service by default":         {"t", whole + "[], service: {}", nil},
		"a Service's name begins otherwise": {"1t", whole + "[], service: {}", []string{"metadata.name must begin with a letter"}},
		"a name for a Deployment alone":     {"1t", whole + "[]", nil},
		"a name with a dot":                 {"a.b", whole + "[]", []string{"metadata.name must be at most 63 characters"}},
		"an unknown field":                  {"t", whole + "[], timezone: UTC", []string{"unknown field"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(tdset(test.name, test.spec))
			wantRefusal(t, err, test.told...)
		})
	}
}
