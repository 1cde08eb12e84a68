package mysqld

import "testing"

// A server may put its clients into a character set in which a byte of a letter looks like a backslash: by
// skip_character_set_client_handshake before MySQL 8.4, by init_connect in all releases. Text that is quoted for another character set ends
// too early there.
func TestQuotingUnderAForcedCharacterSetMysqld(t *testing.T) {
	t.Parallel()
	server := newMysqld(t, writeCertificates(t))
	admin := server.start(t, "", Account{User: "root"}, "--init-connect=SET NAMES gbk", "--character-set-server=gbk")
	plain := Account{User: "plain", Password: "p"}
	if err := admin.exec(t.Context(), "make an account that init_connect is run for", "CREATE USER plain@localhost IDENTIFIED BY 'p'"); err != nil {
		t.Fatal(err)
	}
	const password = "\u4e2d\\' OR '\u4e2d' = '\u4e2d"
	var back, forced string
	row := server.connect(t, plain).db.QueryRowContext(t.Context(), "SELECT ?, @@init_connect", password)
	if err := row.Scan(&back, &forced); err != nil || back != password || forced != "SET NAMES gbk" {
		t.Errorf("quoted and read back: %q, %v; want %q", back, err, password)
	}
}
