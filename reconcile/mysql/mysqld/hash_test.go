package mysqld

import (
	"strings"
	"testing"
)

// The expected results are those of crypt(3) in glibc, which accepts salts of at most 16 characters.
func TestSHACrypt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		password, salt string
		rounds         int
		want           string
	}{
		"the usual rounds":  {"Hello world!", "saltstring", 5000, "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"},
		"more rounds":       {"Hello world!", "saltstringsaltst", 10000, "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"},
		"a long password":   {"a very much longer text to encrypt.  This one even stretches over morethan one line.", "anotherlongsalts", 1400, "Rx.j8H.h8HjEDGomFU8bDkXm3XIUnzyxf12oP84Bnq1"},
		"a few rounds only": {"the minimum number is still observed", "roundstoolow", 1000, "yfvwcWrQ8l/K0DAWyuPMDNHpIVlTQebY9l/gL972bIC"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cryptEncode(shaCrypt([]byte(test.password), []byte(test.salt), test.rounds)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestHashedPasswords(t *testing.T) {
	t.Parallel()
	first, err := hashed("secret")
	if err != nil {
		t.Fatal(err)
	}
	second, err := hashed("secret")
	if err != nil {
		t.Fatal(err)
	}
	if first == second {
		t.Error("the same password has the same hash twice: the salt does not differ")
	}
	// "$A$005$" with 20 characters of salt and 43 of digest.
	if want := "0x24412430303524"; !strings.HasPrefix(first, want) || len(first) != 2+2*70 {
		t.Errorf("got %s, want 70 bytes that begin with %s", first, want)
	}
	for _, password := range []string{"", "a\x00b"} {
		if text, err := hashed(password); err == nil || text != "" {
			t.Errorf("%q was hashed: %q", password, text)
		}
	}
}
