package e2e

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestASingleMemberSurvivesWhatCannotWork: settings and images that mysqld could not start with restart no member, and other ones take
// effect.
func TestASingleMemberSurvivesWhatCannotWork(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	p := newPlace(t)
	p.start(1)
	uid := p.run("get", "pod", p.cluster+"-0", "-n", p.namespace, "-o", "jsonpath={.metadata.uid}")
	db := p.open(p.cluster, p.password)
	for _, change := range []struct{ line, says string }{
		{`config: {no_such_setting: "1"}`, "False SettingsRefused mysqld of image \"mysql:latest\" does not accept no_such_setting"},
		{`config: {max_connections: many}`, "False SettingsRefused spec.config: max_connections must be a whole number"},
		{`config: {sql_mode: GARBAGE}`, "False SettingsRefused mysqld of image \"mysql:latest\" does not accept sql_mode"},
		{"image: mysql:no-such-tag", "False ImagePullFailed spec.image mysql:no-such-tag cannot be pulled"},
		{"image: mysql-operator:latest", "False ImageUnusable spec.image: image \"mysql-operator:latest\" did not report"},
		{"plugins: [no_such_plugin.so]", "False SettingsRefused mysqld of image \"mysql:latest\" does not accept no_such_plugin.so"},
	} {
		p.mustApply(p.manifest("replicas: 1", change.line))
		p.waitReady(change.says, changeLimit)
		p.isValue(db, "SELECT 1", "1")
	}
	p.mustApply(p.manifest("replicas: 1"))
	p.settled(1)
	if now := p.run("get", "pod", p.cluster+"-0", "-n", p.namespace, "-o", "jsonpath={.metadata.uid}"); now != uid {
		t.Errorf("the member was restarted for what could not work")
	}
	p.start(1, `config: {sql_mode: ANSI, max_connections: "77"}`)
	p.waitValue(p.open(p.cluster, p.password), "SELECT CONCAT(@@GLOBAL.max_connections, ' ', @@GLOBAL.sql_mode LIKE '%ANSI%')", "77 1", answerLimit)
}

// TestPluginsWithTheirSettings: a new cluster loads a plugin of the image, with settings that only it knows, and so does a replica that
// comes later.
func TestPluginsWithTheirSettings(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	p := newPlace(t)
	// Sizing does not know what a plugin takes: with this one, mysqld needs more than 512Mi.
	lines := []string{"plugins: [thread_pool.so]", `config: {thread_pool_size: "3"}`, "resources: {}"}
	p.start(1, lines...)
	const query = "SELECT CONCAT(@@GLOBAL.thread_pool_size, ' ', PLUGIN_STATUS) FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'thread_pool'"
	p.waitValue(p.open(p.cluster, p.password), query, "3 ACTIVE", answerLimit)
	p.start(2, lines...)
	p.waitValue(p.open(p.cluster+"-read", p.password), query, "3 ACTIVE", answerLimit)
}
