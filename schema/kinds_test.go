package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelect(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		names []string
		want  string
	}{
		"nothing said":       {nil, "MySQLCluster MySQLBackupSchedule MySQLBackupInstance"},
		"empty words":        {[]string{"", " "}, "MySQLCluster MySQLBackupSchedule MySQLBackupInstance"},
		"everything":         {[]string{"all"}, "MySQLCluster MySQLBackupSchedule MySQLBackupInstance ConfigMonitor TDSet PulsarConsumer VmGroup MyCustomResource"},
		"everything and one": {[]string{"ALL", "MySQLCluster"}, "MySQLCluster MySQLBackupSchedule MySQLBackupInstance ConfigMonitor TDSet PulsarConsumer VmGroup MyCustomResource"},
		"by kind":            {[]string{"ConfigMonitor"}, "ConfigMonitor"},
		"by plural":          {[]string{"mysqlclusters"}, "MySQLCluster"},
		"letter case":        {[]string{"mysqlcluster"}, "MySQLCluster"},
		"twice":              {[]string{"MySQLCluster", "mysqlclusters"}, "MySQLCluster"},
		"in the table order": {[]string{"configmonitors", "mysqlclusters"}, "MySQLCluster ConfigMonitor"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			chosen, err := Select(test.names)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, kind := range chosen {
				got = append(got, kind.Kind)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("selected (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelectNamesTheKnownKinds(t *testing.T) {
	t.Parallel()
	_, err := Select([]string{"MySQLCluster", "Postgres"})
	wantRefusal(t, err, `"postgres"`, "MySQLCluster", "ConfigMonitor", "all")
}

func TestKindsIsAFreshTable(t *testing.T) {
	t.Parallel()
	Kinds()[0].Group = "elsewhere"
	if Kinds()[0].Group != MySQLGroup {
		t.Error("a caller changed the table for everyone")
	}
}

func TestDefinitionOfAnUnknownKind(t *testing.T) {
	t.Parallel()
	_, err := Definition(Kind{Group: "g", Version: "v1", Kind: "Nothing", Plural: "nothings"})
	wantRefusal(t, err, "find the definition of Nothing", "nothings.g.yaml")
}
