package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// s3Size makes a backup of two parts, the first of which is stored in pieces.
const s3Size = 6 << 20

func twoParts() WriteOptions { return WriteOptions{PartSize: int64(testTuning().piece) + 1} }

// faultBed is a gateway with a folder for each test.
type faultBed struct {
	gateway
	folders atomic.Int64
}

// folder returns a proxy for a new folder, a store that uses the proxy, and a store that does not.
func (b *faultBed) folder(t *testing.T, tuning tuning) (*proxy, *Store, *Store) {
	t.Helper()
	through := newProxy(t, b.url, httptest.NewServer, nil)
	name := fmt.Sprintf("folder-%d", b.folders.Add(1))
	return through, openedWith(t, b.location(t, through.server.URL, name), tuning), opened(t, b.location(t, b.url, name))
}

func TestS3(t *testing.T) {
	t.Parallel()
	bed := &faultBed{gateway: startGateway(t)}
	t.Run("conforms", func(t *testing.T) {
		t.Parallel()
		conforms(t, opened(t, bed.location(t, bed.url, "conforms")))
	})
	t.Run("custom CA", func(t *testing.T) {
		t.Parallel()
		customCA(t, bed)
	})
	t.Run("credentials", func(t *testing.T) {
		t.Parallel()
		credentials(t, bed)
	})
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		slow(t, bed)
	})
	t.Run("flipped bits over TLS", func(t *testing.T) {
		t.Parallel()
		flippedBits(t, bed)
	})
	sampled, kinds := sample.New(t), faults()
	for number, one := range slices.Sorted(maps.Keys(kinds)) {
		for index, way := range []struct {
			name string
			run  func(*testing.T, *faultBed, fault, destination.Kind)
		}{{"passing", passing}, {"lasting", lasting}, {"reading", reading}} {
			if sampled.Takes(number + index) {
				t.Run(way.name+" "+string(one), func(t *testing.T) {
					t.Parallel()
					way.run(t, bed, one, kinds[one])
				})
			}
		}
	}
}

// conforms checks the requirements for every store.
func conforms(t *testing.T, store *Store) {
	t.Helper()
	var missing *NotFoundError
	if _, _, err := Load(t.Context(), store); !errors.As(err, &missing) {
		t.Errorf("load from a folder that does not exist: %v", err)
	}
	identity := newIdentity(t)
	options := twoParts()
	options.Recipients = []age.Recipient{identity.Recipient()}
	expected, manifest := backedUp(t, store, options, s3Size)
	if len(manifest.Parts) < 2 || manifest.Parts[0].Size <= int64(testTuning().piece) {
		t.Fatalf("the backup has unexpected parts: %+v", manifest.Parts)
	}
	loaded, _, err := Load(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if difference := extracted(t, store, loaded, identity).differs(expected); difference != "" {
		t.Error(difference)
	}
	var occupied *OccupiedError
	if _, err := Begin(t.Context(), store, WriteOptions{Identity: owner("another")}); !errors.As(err, &occupied) {
		t.Errorf("begin in another's folder: %v", err)
	}
	if err := store.remove(t.Context(), manifest.Parts[1].Name); err != nil {
		t.Error(err)
	}
	if err := store.remove(t.Context(), manifest.Parts[1].Name); err != nil {
		t.Errorf("remove an object that does not exist: %v", err)
	}
	var incomplete *IncompleteError
	if _, _, err := Load(t.Context(), store); !errors.As(err, &incomplete) {
		t.Errorf("load with a missing part: %v", err)
	}
	if err := Verify(t.Context(), store, manifest, ReadOptions{Identities: []age.Identity{identity}}); !errors.As(err, &incomplete) {
		t.Errorf("verify with a missing part: %v", err)
	}
	if err := Remove(t.Context(), store, owner("nightly")); err != nil {
		t.Errorf("remove: %v", err)
	}
	if objects, err := store.list(t.Context()); err != nil || len(objects) > 0 {
		t.Errorf("left: %v, %v", objects, err)
	}
}

// A temporary fault is not noticed if the request is retried.
func passing(t *testing.T, bed *faultBed, one fault, kind destination.Kind) {
	t.Helper()
	if !one.passing() {
		t.Skip("it is reported at once")
	}
	for number := 0; ; number++ {
		proxy, store, direct := bed.folder(t, testTuning())
		proxy.breakAt(one, number, number+1)
		_, err := backUp(t.Context(), store, twoParts(), s3Size, tree{})
		if err != nil {
			t.Fatalf("fault at request %d: %v", number, err)
		}
		if err := readWhole(t, direct, ReadOptions{}); err != nil {
			t.Fatalf("fault at request %d, verify: %v", number, err)
		}
		if proxy.requests() <= number {
			return
		}
	}
}

// A lasting fault ends the backup with an error of its kind, and leaves nothing that is taken for a backup. After the fault, the instance's
// next attempt succeeds and leaves nothing of the first.
func lasting(t *testing.T, bed *faultBed, one fault, kind destination.Kind) {
	t.Helper()
	for number := 0; ; number++ {
		hasty := testTuning()
		hasty.attempts = 2 // more would not help
		proxy, store, direct := bed.folder(t, hasty)
		proxy.breakAt(one, number, 1<<30)
		manifest, err := backUp(t.Context(), store, twoParts(), s3Size, tree{})
		if err == nil {
			if err := Verify(t.Context(), direct, manifest, ReadOptions{}); err != nil {
				t.Fatalf("fault at request %d, verify: %v", number, err)
			}
			if proxy.requests() > number && one != faultGarbled {
				t.Fatalf("fault at request %d: not noticed", number)
			}
			if proxy.requests() <= number {
				return
			}
			continue
		}
		var failed *destination.StoreError
		if !errors.As(err, &failed) || (kind != "" && failed.Kind != kind) {
			t.Errorf("fault at request %d: %v", number, err)
		}
		// If only the answer was lost, the manifest may be stored: then there is a complete backup.
		if _, _, err := Load(t.Context(), direct); err == nil {
			if err := readWhole(t, direct, ReadOptions{}); err != nil {
				t.Errorf("fault at request %d: an incomplete backup was loaded: %v", number, err)
			}
			continue
		}
		again(t, bed, direct)
	}
}

// again makes the backup without a fault, and checks that nothing else is left.
func again(t *testing.T, bed *faultBed, direct *Store) {
	t.Helper()
	manifest, err := backUp(t.Context(), direct, twoParts(), s3Size, tree{})
	if err != nil {
		t.Fatalf("the next attempt: %v", err)
	}
	if err := readWhole(t, direct, ReadOptions{}); err != nil {
		t.Errorf("verify the next attempt: %v", err)
	}
	objects, err := direct.list(t.Context())
	if err != nil || len(objects) != len(manifest.Parts)+2 {
		t.Errorf("left after both attempts: %v, %v", objects, err)
	}
	if uploads := uploadsIn(t, bed, direct); len(uploads) > 0 {
		t.Errorf("unfinished uploads: %q", uploads)
	}
}

// uploadsIn returns a folder's uploads that were neither completed nor aborted.
func uploadsIn(t *testing.T, _ *faultBed, store *Store) []string {
	t.Helper()
	bucket, ok := store.bucket.(*s3Bucket)
	if !ok {
		t.Fatalf("not S3: %T", store.bucket)
	}
	found, err := bucket.client.ListMultipartUploads(t.Context(), multipartUploadsOf(bucket))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, upload := range found.Uploads {
		names = append(names, *upload.Key)
	}
	return names
}

// A restore continues after a temporary fault. After a lasting one, its error names the fault, and never says that the backup is bad.
func reading(t *testing.T, bed *faultBed, one fault, kind destination.Kind) {
	t.Helper()
	if one == faultGarbled || one == faultCutUp {
		t.Skip("nothing is sent")
	}
	proxy, store, _ := bed.folder(t, testTuning())
	expected, manifest := backedUp(t, store, twoParts(), s3Size)
	read := func(number, until int) (tree, error) {
		proxy.breakAt(one, number, until)
		found := tree{}
		loaded, _, err := Load(t.Context(), store)
		if err == nil {
			err = Extract(t.Context(), store, loaded, ReadOptions{}, found)
		}
		return found, err
	}
	for number := 0; ; number++ {
		found, err := read(number, number+1)
		if difference := found.differs(expected); one.passing() && (err != nil || difference != "") {
			t.Errorf("fault at request %d: %v %s", number, err, difference)
		}
		_, err = read(number, 1<<30)
		if err == nil {
			break
		}
		var failed *destination.StoreError
		if !errors.As(err, &failed) || failed.Kind != kind {
			t.Errorf("fault from request %d on: %v", number, err)
		}
	}
	if proxy.requests() < len(manifest.Parts)+2 {
		t.Errorf("only %d requests were tried", proxy.requests())
	}
}

// customCA: a CA that the system does not know signed the store's certificate.
func customCA(t *testing.T, bed *faultBed) {
	t.Helper()
	proxy := newProxy(t, bed.url, httptest.NewTLSServer, nil)
	location := bed.location(t, proxy.server.URL, "custom-ca")
	var failed *destination.StoreError
	if _, err := Begin(t.Context(), opened(t, location), WriteOptions{Identity: owner("nightly")}); !errors.As(err, &failed) || failed.Kind != destination.KindUntrusted {
		t.Errorf("begin without the CA: %v", err)
	}
	ca := pemOf(proxy.server.Certificate().Raw)
	if err := os.WriteFile(filepath.Join(location.CredentialsDir, "ca.crt"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	store := opened(t, location)
	_, manifest := backedUp(t, store, WriteOptions{}, 1<<20)
	if err := Verify(t.Context(), store, manifest, ReadOptions{}); err != nil {
		t.Error(err)
	}
}

// flippedBits: a bit of a body flips after the end of TLS. A real server refuses the body, and it is sent again.
func flippedBits(t *testing.T, bed *faultBed) {
	t.Helper()
	through := newProxy(t, bed.url, httptest.NewTLSServer, nil)
	for number := 0; ; number++ {
		location := bed.location(t, through.server.URL, fmt.Sprint("flipped-", number))
		ca := pemOf(through.server.Certificate().Raw)
		if err := os.WriteFile(filepath.Join(location.CredentialsDir, "ca.crt"), ca, 0o600); err != nil {
			t.Fatal(err)
		}
		store := opened(t, location)
		through.breakAt(faultGarbled, number, number+1)
		if _, err := backUp(t.Context(), store, twoParts(), s3Size, tree{}); err != nil {
			t.Fatalf("a bit flipped in request %d: %v", number, err)
		}
		sent := through.requests()
		through.breakAt("", 0, 0)
		if err := readWhole(t, store, ReadOptions{}); err != nil {
			t.Fatalf("a bit flipped in request %d, verify: %v", number, err)
		}
		if sent <= number {
			return
		}
	}
}

// credentials: wrong credentials, and a missing bucket, are reported.
func credentials(t *testing.T, bed *faultBed) {
	t.Helper()
	through := newProxy(t, bed.url, httptest.NewTLSServer, nil)
	ca := string(pemOf(through.server.Certificate().Raw))
	for name, keys := range map[string]map[string]string{
		"wrong secret":   {destination.KeyAccess: gatewayAccess, destination.KeySecret: "another"},
		"wrong name":     {destination.KeyAccess: "unknown", destination.KeySecret: gatewaySecret},
		"a stray token":  {destination.KeyAccess: "unknown", destination.KeySecret: gatewaySecret, destination.KeySession: "of yesterday"},
		"none, anywhere": {},
	} {
		if name == "none, anywhere" && os.Getenv("AWS_ACCESS_KEY_ID") != "" {
			continue
		}
		keys[destination.KeyEndpoint], keys["ca.crt"] = through.server.URL, ca
		location := bed.location(t, through.server.URL, "credentials")
		location.CredentialsDir = secretDir(t, keys)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var failed *destination.StoreError
		if _, err := Begin(ctx, opened(t, location), WriteOptions{Identity: owner("nightly")}); !errors.As(err, &failed) || failed.Kind != destination.KindRefused {
			t.Errorf("%s: %v", name, err)
		} else if !strings.Contains(err.Error(), "correct the credentials") {
			t.Errorf("%s: no remedy: %v", name, err)
		}
		cancel()
	}
	var failed *destination.StoreError
	missing := bed.location(t, bed.url, "x")
	missing.URL = strings.Replace(missing.URL, "s3://"+gatewayBucket, "s3://no-such-bucket", 1)
	if _, err := Begin(t.Context(), opened(t, missing), WriteOptions{Identity: owner("nightly")}); !errors.As(err, &failed) || failed.Kind != destination.KindNotFound {
		t.Errorf("no bucket: %v", err)
	}
}

// slow: a store that needs longer than a stall for a whole request, but transfers bytes all the time, works.
func slow(t *testing.T, bed *faultBed) {
	t.Helper()
	through := slowly(t, bed.url)
	store := openedWith(t, bed.location(t, through, "slow"), testTuning())
	began := time.Now()
	_, manifest := backedUp(t, store, WriteOptions{PartSize: 1 << 30}, 3<<20)
	if took := time.Since(began); took < testTuning().stall {
		t.Errorf("it was not slow: %s", took)
	}
	if err := Verify(t.Context(), opened(t, bed.location(t, bed.url, "slow")), manifest, ReadOptions{}); err != nil {
		t.Error(err)
	}
}
