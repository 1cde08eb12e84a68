package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Handler serves the pull part of the OCI distribution protocol (OCI distribution-spec, section "Pull"). The query parameter ns names the
// mirrored registry, as containerd sends it. Without it, the request's host is the registry.
func (s *Store) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/", s.serve)
	return mux
}

func (s *Store) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	rest := strings.TrimPrefix(r.URL.Path, "/v2/")
	if rest == "" {
		w.WriteHeader(http.StatusOK)
		return
	}
	if name, sum, ok := cutLast(rest, "/blobs/"); ok {
		s.serveBlob(w, r, name, sum)
		return
	}
	name, ref, ok := cutLast(rest, "/manifests/")
	if !ok {
		refuse(w, http.StatusNotFound, "UNSUPPORTED", "this registry serves only manifests and blobs")
		return
	}
	s.serveManifest(w, r, name, ref)
}

func (s *Store) serveManifest(w http.ResponseWriter, r *http.Request, name, ref string) {
	found, known, err := s.resolve(registryOf(r)+"/"+name, ref)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	if !known {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", fmt.Sprintf("no image %s/%s:%s was loaded", registryOf(r), name, ref))
		return
	}
	content, err := os.ReadFile(s.BlobPath(found.Digest))
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	w.Header().Set("Content-Type", found.MediaType)
	w.Header().Set("Docker-Content-Digest", found.Digest.String())
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method == http.MethodHead {
		return
	}
	// This fails only if the client closes the connection.
	_, _ = w.Write(content)
}

// resolve finds a manifest of the repository by tag or by digest.
func (s *Store) resolve(repository, ref string) (v1.Descriptor, bool, error) {
	sum, err := digest.Parse(ref)
	if err != nil {
		return s.Manifest(repository + ":" + ref)
	}
	index, err := s.index()
	if err != nil {
		return v1.Descriptor{}, false, err
	}
	for _, m := range index.Manifests {
		named := m.Annotations[v1.AnnotationRefName]
		if m.Digest == sum && (strings.HasPrefix(named, repository+":") || named == repository+"@"+ref) {
			return m, true, nil
		}
	}
	return v1.Descriptor{}, false, nil
}

func (s *Store) serveBlob(w http.ResponseWriter, r *http.Request, name, ref string) {
	sum, err := digest.Parse(ref)
	if err != nil {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	file, err := os.Open(s.BlobPath(sum))
	if errors.Is(err, fs.ErrNotExist) {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", fmt.Sprintf("%s has no blob %s", name, sum))
		return
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", sum.String())
	http.ServeContent(w, r, "", info.ModTime(), file)
}

func registryOf(r *http.Request) string {
	if ns := r.URL.Query().Get("ns"); ns != "" {
		return ns
	}
	return r.Host
}

// refuse answers with the protocol's error body.
func refuse(w http.ResponseWriter, status int, code, message string) {
	body, err := json.Marshal(map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
	if err != nil {
		http.Error(w, message, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
