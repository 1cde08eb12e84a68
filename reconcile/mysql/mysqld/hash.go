package mysqld

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	// saltLength is how many characters of salt caching_sha2_password uses. Libraries for SHA-crypt accept at most 16, so this file
	// implements it.
	saltLength = 20
	// hashRounds is MySQL's default for caching_sha2_password_digest_rounds.
	hashRounds = 5000
	// cryptAlphabet is the base64 alphabet of crypt(3).
	cryptAlphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// hashed returns the hash of a password as mysql.user stores it, as a literal for IDENTIFIED WITH caching_sha2_password AS. A statement
// with it has no cleartext, and no password policy applies to it (manual, "The Password Validation Component").
func hashed(password string) (string, error) {
	switch {
	case password == "":
		return "", errors.New("the password is empty; set a password for the account")
	case strings.ContainsRune(password, 0):
		return "", errors.New("a password may not contain a NUL character")
	}
	salt := make([]byte, saltLength)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("generate a salt: %w", err)
	}
	for i := range salt {
		salt[i] = cryptAlphabet[salt[i]%byte(len(cryptAlphabet))]
	}
	return "0x" + hex.EncodeToString(cachingSHA2([]byte(password), salt)), nil
}

// cachingSHA2 returns the value of mysql.user.authentication_string for a password: the number of rounds in thousands, in hexadecimal, the
// salt, and the digest (mysql-server, sql/auth/sha2_password.cc, serialize).
func cachingSHA2(password, salt []byte) []byte {
	digest := shaCrypt(password, salt, hashRounds)
	return fmt.Appendf(nil, "$A$%03X$%s%s", hashRounds/1000, salt, cryptEncode(digest))
}

// shaCrypt implements SHA-crypt with SHA-256 (Ulrich Drepper, "Unix crypt using SHA-256 and SHA-512", version 0.4).
func shaCrypt(password, salt []byte, rounds int) [sha256.Size]byte {
	digest := firstDigest(password, salt)
	passwords, salts := sha256.New(), sha256.New()
	for range password {
		passwords.Write(password)
	}
	for range 16 + int(digest[0]) {
		salts.Write(salt)
	}
	p, s := stretch(passwords.Sum(nil), len(password)), stretch(salts.Sum(nil), len(salt))
	for round := range rounds {
		next := sha256.New()
		odd := round%2 == 1
		next.Write(either(odd, p, digest[:]))
		if round%3 != 0 {
			next.Write(s)
		}
		if round%7 != 0 {
			next.Write(p)
		}
		next.Write(either(odd, digest[:], p))
		next.Sum(digest[:0])
	}
	return digest
}

// firstDigest returns the digest that the rounds begin with.
func firstDigest(password, salt []byte) (digest [sha256.Size]byte) {
	inner := sha256.New()
	inner.Write(password)
	inner.Write(salt)
	inner.Write(password)
	middle := inner.Sum(nil)
	outer := sha256.New()
	outer.Write(password)
	outer.Write(salt)
	outer.Write(stretch(middle, len(password)))
	for bits := len(password); bits > 0; bits >>= 1 {
		outer.Write(either(bits%2 == 1, middle, password))
	}
	outer.Sum(digest[:0])
	return digest
}

// stretch repeats a digest until it has the given length.
func stretch(digest []byte, length int) []byte {
	stretched := make([]byte, length)
	for at := 0; at < length; at += len(digest) {
		copy(stretched[at:], digest)
	}
	return stretched
}

func either(first bool, one, other []byte) []byte {
	if first {
		return one
	}
	return other
}

// cryptEncode encodes a digest as crypt(3) does: three bytes in four characters, in the algorithm's order of bytes.
func cryptEncode(digest [sha256.Size]byte) string {
	var text strings.Builder
	group := func(value, characters int) {
		for range characters {
			text.WriteByte(cryptAlphabet[value&0x3f])
			value >>= 6
		}
	}
	high, middle, low := 0, 10, 20
	for range sha256.Size / 3 {
		group(int(digest[high])<<16|int(digest[middle])<<8|int(digest[low]), 4)
		high, middle, low = (high+21)%30, (middle+21)%30, (low+21)%30
	}
	group(int(digest[31])<<8|int(digest[30]), 3)
	return text.String()
}
