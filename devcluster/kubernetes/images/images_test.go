package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

type entry struct {
	name, content, link string
}

func tarOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Size: int64(len(e.content)), Mode: 0o644, Typeflag: tar.TypeReg}
		if e.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		}
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(writer, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func archiveFile(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLoad(t *testing.T) {
	t.Parallel()
	manifest := func(content string) entry { return entry{name: "manifest.json", content: content} }
	tests := map[string]struct {
		archive []byte
		extra   []string
		want    []string
		layers  []string // content and media type of the first image's layers
		says    string
	}{
		"the names of the archive are completed": {
			archive: tarOf(t, entry{name: "c.json", content: "{}"}, entry{name: "l.tar", content: "layer"}, manifest(`[{"Config":"c.json","RepoTags":["mysql:latest","mysql:9.7.4"],"Layers":["l.tar"]}]`)),
			want:    []string{"docker.io/library/mysql:latest", "docker.io/library/mysql:9.7.4"},
			layers:  []string{"layer tar"},
		},
		"extra names are added": {
			archive: tarOf(t, entry{name: "c.json", content: "{}"}, manifest(`[{"Config":"c.json","RepoTags":["localhost/op:dev"],"Layers":[]}]`)),
			extra:   []string{"ghcr.io/team/op"},
			want:    []string{"localhost/op:dev", "ghcr.io/team/op:latest"},
		},
		"a layer used twice is a link the second time": {
			archive: tarOf(t, manifest(`[{"Config":"c.json","RepoTags":["a"],"Layers":["x/layer.tar","y/layer.tar"]}]`), entry{name: "c.json", content: "{}"}, entry{name: "x/layer.tar", content: "same"}, entry{name: "y/layer.tar", link: "../x/layer.tar"}),
			want:    []string{"docker.io/library/a:latest"},
			layers:  []string{"same tar", "same tar"},
		},
		"compressed layers stay compressed": {
			archive: tarOf(t, manifest(`[{"Config":"c.json","RepoTags":["a"],"Layers":["l"]}]`), entry{name: "c.json", content: "{}"}, entry{name: "l", content: string(gzipped(t, []byte("layer")))}),
			want:    []string{"docker.io/library/a:latest"},
			layers:  []string{"layer tar+gzip"},
		},
		"a compressed archive is read too": {
			archive: gzipped(t, tarOf(t, entry{name: "c.json", content: "{}"}, manifest(`[{"Config":"c.json","RepoTags":["a"],"Layers":[]}]`))),
			want:    []string{"docker.io/library/a:latest"},
		},
		"an image without a name needs one": {
			archive: tarOf(t, entry{name: "c.json", content: "{}"}, manifest(`[{"Config":"c.json","Layers":[]}]`)),
			says:    "no name",
		},
		"extra names for two images are ambiguous": {
			archive: tarOf(t, entry{name: "c.json", content: "{}"}, manifest(`[{"Config":"c.json","RepoTags":["a"]},{"Config":"c.json","RepoTags":["b"]}]`)),
			extra:   []string{"c"},
			says:    "ambiguous",
		},
		"a missing layer is reported": {
			archive: tarOf(t, entry{name: "c.json", content: "{}"}, manifest(`[{"Config":"c.json","RepoTags":["a"],"Layers":["gone.tar"]}]`)),
			says:    "gone.tar",
		},
		"a tar without images is reported":   {archive: tarOf(t, entry{name: "hello", content: "x"}), says: "docker save"},
		"a file of another type is reported": {archive: []byte(strings.Repeat("no tar ", 200)), says: "not a tar archive"},
		"an invalid name is reported":        {archive: tarOf(t, entry{name: "c.json", content: "{}"}, manifest(`[{"Config":"c.json","RepoTags":["UPPER"],"Layers":[]}]`)), says: "UPPER"},
		"an empty file holds no image":       {archive: nil, says: "no image"},
		"manifest.json must be readable":     {archive: tarOf(t, manifest(`{`)), says: "manifest.json"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			got, err := s.Load(archiveFile(t, tc.archive), tc.extra)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v, want one that says %q", err, tc.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.layers, layersOf(t, s, got[0])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func layersOf(t *testing.T, s *Store, ref string) []string {
	t.Helper()
	found, known, err := s.Manifest(ref)
	if err != nil || !known {
		t.Fatalf("%s: known %t, %v", ref, known, err)
	}
	manifest, err := s.readManifest(found.Digest)
	if err != nil {
		t.Fatal(err)
	}
	var layers []string
	for _, layer := range manifest.Layers {
		content, err := os.ReadFile(s.BlobPath(layer.Digest))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(layer.MediaType, "gzip") {
			reader, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if content, err = io.ReadAll(reader); err != nil {
				t.Fatal(err)
			}
		}
		layers = append(layers, string(content)+" "+strings.TrimPrefix(layer.MediaType, "application/vnd.oci.image.layer.v1."))
	}
	return layers
}

// An image that is loaded again replaces the old one of the same name, whose blobs are removed.
func TestLoadReplacesAndPrunes(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, content := range []string{"first", "second"} {
		archive := tarOf(t, entry{name: "c.json", content: "{}"}, entry{name: "l", content: content}, entry{name: "manifest.json", content: `[{"Config":"c.json","RepoTags":["a"],"Layers":["l"]}]`})
		if _, err := s.Load(archiveFile(t, archive), nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"second tar"}, layersOf(t, s, "docker.io/library/a:latest")); diff != "" {
		t.Error(diff)
	}
	blobs, err := filepath.Glob(s.BlobPath("sha256:*"))
	if err != nil || len(blobs) != 3 {
		t.Errorf("%d blobs, want manifest, configuration and layer: %v", len(blobs), err)
	}
}

// "docker save A B" writes one archive. When the first image gets its name, the blobs of the second one must not be removed.
func TestLoadKeepsEveryImageOfAnArchive(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	archive := tarOf(t,
		entry{name: "manifest.json", content: `[{"Config":"a.json","RepoTags":["a"],"Layers":["a.tar"]},{"Config":"b.json","RepoTags":["b"],"Layers":["b.tar"]}]`},
		entry{name: "a.json", content: `{"os":"linux"}`}, entry{name: "a.tar", content: "one"},
		entry{name: "b.json", content: `{"os":"plan9"}`}, entry{name: "b.tar", content: "two"},
	)
	if _, err := s.Load(archiveFile(t, archive), nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "one tar", "b": "two tar"} {
		if diff := cmp.Diff([]string{want}, layersOf(t, s, "docker.io/library/"+name+":latest")); diff != "" {
			t.Errorf("image %s: %s", name, diff)
		}
	}
}

// Two users load images at the same time. Each load may find the other's blobs before these have a name.
func TestLoadsAtOnceDoNotHarmEachOther(t *testing.T) {
	t.Parallel()
	dir := newStore(t).dir
	const loads = 16
	failures := make(chan error, loads)
	for i := range loads {
		archive := archiveFile(t, tarOf(t,
			entry{name: "c.json", content: fmt.Sprintf(`{"os":"%d"}`, i)}, entry{name: "l", content: fmt.Sprint("layer ", i)},
			entry{name: "manifest.json", content: fmt.Sprintf(`[{"Config":"c.json","RepoTags":["image-%d"],"Layers":["l"]}]`, i)}))
		go func() {
			s, err := OpenStore(dir) // as another process does
			if err == nil {
				_, err = s.Load(archive, nil)
			}
			failures <- err
		}()
	}
	for range loads {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	for i := range loads {
		layersOf(t, &Store{dir: dir}, fmt.Sprintf("docker.io/library/image-%d:latest", i))
	}
}

// An interrupted load leaves a file without a name. The next load removes it.
func TestLoadClearsAwayWhatAnInterruptedOneLeft(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	left := filepath.Join(s.dir, "blob-123")
	if err := os.WriteFile(left, []byte("half a layer"), 0o600); err != nil {
		t.Fatal(err)
	}
	archive := tarOf(t, entry{name: "c.json", content: "{}"}, entry{name: "manifest.json", content: `[{"Config":"c.json","RepoTags":["a"],"Layers":[]}]`})
	if _, err := s.Load(archiveFile(t, archive), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("the file is still there")
	}
}

func TestPack(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	binary := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(binary, []byte("binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // repeated at every start of a cluster
		if err := s.Pack(binary, "devcluster.local/pause:1"); err != nil {
			t.Fatal(err)
		}
	}
	found, known, err := s.Manifest("devcluster.local/pause:1")
	if err != nil || !known {
		t.Fatalf("known %t, %v", known, err)
	}
	manifest, err := s.readManifest(found.Digest)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(s.BlobPath(manifest.Config.Digest))
	if err != nil {
		t.Fatal(err)
	}
	var config v1.Image
	if err := json.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/pause"}, config.Config.Entrypoint); diff != "" {
		t.Error(diff)
	}
	if config.RootFS.DiffIDs[0] != manifest.Layers[0].Digest {
		t.Error("the configuration names another layer than the manifest")
	}
}

// These are containerd's requests when it pulls through a mirror.
func TestRegistry(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	archive := tarOf(t, entry{name: "c.json", content: `{"os":"linux"}`}, entry{name: "l", content: "layer"}, entry{name: "manifest.json", content: `[{"Config":"c.json","RepoTags":["mysql:latest","ghcr.io/a/b:1"],"Layers":["l"]}]`})
	if _, err := s.Load(archiveFile(t, archive), nil); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	manifest, _, err := s.Manifest("ghcr.io/a/b:1")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := s.readManifest(manifest.Digest)
	if err != nil {
		t.Fatal(err)
	}
	layer := parsed.Layers[0].Digest.String()
	tests := map[string]struct {
		path, method string
		status       int
		body         string
	}{
		"the version check":                       {path: "/v2/", status: 200},
		"a tag of a mirrored registry":            {path: "/v2/library/mysql/manifests/latest?ns=docker.io", status: 200, body: `"schemaVersion":2`},
		"its headers alone":                       {path: "/v2/library/mysql/manifests/latest?ns=docker.io", method: http.MethodHead, status: 200},
		"another registry's image":                {path: "/v2/a/b/manifests/1?ns=ghcr.io", status: 200},
		"by digest":                               {path: "/v2/a/b/manifests/" + manifest.Digest.String() + "?ns=ghcr.io", status: 200},
		"the same digest in a foreign repository": {path: "/v2/c/d/manifests/" + manifest.Digest.String() + "?ns=ghcr.io", status: 404, body: "MANIFEST_UNKNOWN"},
		"a tag that was not loaded":               {path: "/v2/library/mysql/manifests/5.7?ns=docker.io", status: 404, body: "docker.io/library/mysql:5.7"},
		"the same name at another registry":       {path: "/v2/library/mysql/manifests/latest?ns=quay.io", status: 404},
		"a layer":                                 {path: "/v2/a/b/blobs/" + layer + "?ns=ghcr.io", status: 200, body: "layer"},
		"a missing layer":                         {path: "/v2/a/b/blobs/sha256:" + strings.Repeat("0", 64), status: 404, body: "BLOB_UNKNOWN"},
		"an invalid digest":                       {path: "/v2/a/b/blobs/latest", status: 400, body: "DIGEST_INVALID"},
		"anything else":                           {path: "/v2/_catalog", status: 404},
		"nothing can be pushed":                   {path: "/v2/a/b/blobs/uploads/", method: http.MethodPost, status: 405},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			request, err := http.NewRequestWithContext(t.Context(), method, server.URL+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != tc.status || !strings.Contains(string(body), tc.body) {
				t.Errorf("%d %s; want %d with %q", response.StatusCode, body, tc.status, tc.body)
			}
		})
	}
}
