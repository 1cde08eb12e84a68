package mysql

import (
	"strings"
	"testing"
)

func bootstrap(root string) Bootstrap {
	return Bootstrap{
		Agent: Account{AgentUser, "agent-secret"}, Replication: Account{ReplicationUser, "replication-secret"}, Clone: Account{CloneUser, "clone-secret"},
		Root: root, NewData: true,
	}
}

// literal reads a string literal as a session with an empty sql_mode does (manual, "String Literals"), and what follows it.
func literal(t *testing.T, text string) (value, rest string) {
	t.Helper()
	if !strings.HasPrefix(text, "'") {
		t.Fatalf("no string literal at %q", text)
	}
	escapes := map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', '0': 0, 'Z': 0x1a}
	var read []byte
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			escaped, special := escapes[text[i]]
			if !special {
				escaped = text[i]
			}
			read = append(read, escaped)
		case c == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
			read = append(read, c)
		case c == '\'':
			return string(read), text[i+1:]
		default:
			read = append(read, c)
		}
	}
	t.Fatalf("the string literal does not end: %q", text)
	return "", ""
}

func TestBootstrapQuotesPasswords(t *testing.T) {
	t.Parallel()
	passwords := map[string]string{
		"plain":                        "secret",
		"a quote":                      `it's`,
		"quotes only":                  `''''`,
		"a double quote":               `say "hi"`,
		"a backslash at the end":       `C:\`,
		"a backslash before a quote":   `\'`,
		"what would end the statement": `'; DROP USER root; -- `,
		"a semicolon at a line's end":  "a;\nDROP USER root;",
		"line breaks":                  "one\ntwo\r\nthree",
		"a comment":                    "# not a comment",
		"control characters":           "\x01\x1a\x7f\t",
		"unicode":                      "пароль-密码-🔑-é",
		"percent and underscore":       "100%_sure",
		"letters that escape":          `\n\t\0\Z\%`,
	}
	for name, password := range passwords {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := bootstrap(password).SQL()
			if err != nil {
				t.Fatal(err)
			}
			_, after, found := strings.Cut(text, "'root'@'%' IDENTIFIED WITH caching_sha2_password BY ")
			if !found {
				t.Fatalf("root gets no password:\n%s", text)
			}
			got, rest := literal(t, after)
			if got != password {
				t.Errorf("mysqld reads the password %q, want %q", got, password)
			}
			if !strings.HasPrefix(rest, ";\n") {
				t.Errorf("the statement goes on with %q", rest)
			}
		})
	}
}

func TestBootstrapRefusesNUL(t *testing.T) {
	t.Parallel()
	withNUL := bootstrap("fine")
	withNUL.Clone.Password = "a\x00b"
	for name, b := range map[string]Bootstrap{"root": bootstrap("a\x00b"), CloneUser: withNUL} {
		text, err := b.SQL()
		if err == nil || text != "" {
			t.Fatalf("%s: a NUL character was written: %q", name, text)
		}
		if !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "a\x00b") {
			t.Errorf("the error shall name %s and not tell the password: %v", name, err)
		}
	}
}

// init_file takes one statement a line (manual, "init_file"), and every one of them must be harmless on a member that holds data.
func TestBootstrapIsOneStatementALine(t *testing.T) {
	t.Parallel()
	text, err := bootstrap("two\nlines;").SQL()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines {
		if !strings.HasSuffix(line, ";") || strings.Contains(strings.TrimSuffix(line, ";"), ";\n") {
			t.Errorf("not one statement: %q", line)
		}
	}
	if lines[0] != "SET SESSION sql_log_bin = 0;" || lines[1] != "SET SESSION sql_mode = '';" {
		t.Errorf("it begins with %q and %q: it must stay out of the binary log, and escape with backslashes", lines[0], lines[1])
	}
}

func TestBootstrapLeavesRootAloneOnceThereIsData(t *testing.T) {
	t.Parallel()
	b := bootstrap("secret")
	b.NewData = false
	text, err := b.SQL()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "root") || strings.Contains(text, "'secret'") {
		t.Errorf("root is touched on a member that has data:\n%s", text)
	}
	for _, user := range []string{AgentUser, ReplicationUser, CloneUser} {
		altered := strings.Index(text, "ALTER USER '"+user+"'@")
		if altered < 0 || !strings.Contains(text[altered:], "IDENTIFIED") {
			t.Errorf("%s does not get the password that is in force:\n%s", user, text)
			continue
		}
		if first, _, _ := strings.Cut(text[altered:], ";"); !strings.Contains(first, "PASSWORD EXPIRE NEVER PASSWORD HISTORY 0 ") {
			t.Errorf("%s is subject to rules for people's passwords: %s", user, first)
		}
	}
}

func TestBootstrapGrantsTheLeast(t *testing.T) {
	t.Parallel()
	text, err := bootstrap("secret").SQL()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		own := strings.Contains(line, "mysql_operator_")
		if own && strings.HasPrefix(line, "GRANT") && (strings.Contains(line, "ALL") || strings.Contains(line, "GRANT OPTION") || strings.Contains(line, " SUPER")) {
			t.Errorf("more than an account of the operator needs: %s", line)
		}
		if own && strings.Contains(line, "'@'%'") && strings.Contains(line, "IDENTIFIED") && !strings.Contains(line, "REQUIRE X509") {
			t.Errorf("reached from other machines without a client certificate: %s", line)
		}
	}
	if strings.Contains(text, "'"+AgentUser+"'@'%'") {
		t.Error("the agent's account can be reached from other machines")
	}
}
