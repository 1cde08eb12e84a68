package archive

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// fakeS3 answers the few requests that a Store sends. Like Amazon's S3, it refuses a body that does not match its digest, and pieces that
// it does not have. The tests in s3_test.go use a real server; fakeS3 needs no build.
type fakeS3 struct {
	lock    sync.Mutex
	objects map[string][]byte
	// uploads has the pieces by their number.
	uploads map[string]map[int][]byte
	begun   int
	// refused counts bodies that did not match their digest.
	refused int
	// undigested counts objects and pieces without a digest.
	undigested int
	// ignoresMD5: the server checks only the signed SHA-256.
	ignoresMD5 bool
}

func newFakeS3() *fakeS3 {
	return &fakeS3{objects: map[string][]byte{}, uploads: map[string]map[int][]byte{}}
}

// ServeHTTP implements http.Handler.
func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	_, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPut && !f.intact(r.Header, body):
		f.refused++
		refuse(w, http.StatusBadRequest, "BadDigest")
	case r.Method == http.MethodPut:
		f.put(w, name, query.Get("uploadId"), query.Get("partNumber"), body)
	case r.Method == http.MethodPost && query.Has("uploads"):
		f.begun++
		id := fmt.Sprint("upload-", f.begun)
		f.uploads[id] = map[int][]byte{}
		answerXML(w, "InitiateMultipartUploadResult", "<UploadId>"+id+"</UploadId>")
	case r.Method == http.MethodPost:
		f.complete(w, name, query.Get("uploadId"), body)
	case r.Method == http.MethodGet && query.Has("uploads"):
		answerXML(w, "ListMultipartUploadsResult", "<IsTruncated>false</IsTruncated>")
	case r.Method == http.MethodGet && query.Has("list-type"):
		f.list(w, query.Get("prefix"))
	case r.Method == http.MethodDelete:
		delete(f.uploads, query.Get("uploadId"))
		delete(f.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		content, exists := f.objects[name]
		if !exists {
			refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		http.ServeContent(w, r, "", testTime(), bytes.NewReader(content))
	}
}

// intact reports whether a body matches its digests, and counts bodies without a digest.
func (f *fakeS3) intact(header http.Header, body []byte) bool {
	md5Sum, shaSum := md5.Sum(body), sha256.Sum256(body)
	wantMD5, wantSHA := header.Get("Content-Md5"), header.Get("X-Amz-Content-Sha256")
	if f.ignoresMD5 {
		wantMD5 = ""
	}
	if wantSHA == "UNSIGNED-PAYLOAD" {
		wantSHA = ""
	}
	if wantMD5 == "" && wantSHA == "" {
		f.undigested++
	}
	return (wantMD5 == "" || wantMD5 == base64.StdEncoding.EncodeToString(md5Sum[:])) && (wantSHA == "" || wantSHA == hex.EncodeToString(shaSum[:]))
}

func (f *fakeS3) put(w http.ResponseWriter, name, upload, number string, body []byte) {
	w.Header().Set("ETag", etag(body))
	if upload == "" {
		f.objects[name] = body
		return
	}
	pieces, begun := f.uploads[upload]
	var at int
	if _, err := fmt.Sscan(number, &at); err != nil || !begun {
		refuse(w, http.StatusNotFound, "NoSuchUpload")
		return
	}
	pieces[at] = body
}

// listedPiece is a piece in the client's list.
type listedPiece struct {
	PartNumber int    `xml:"PartNumber"`
	ETag       string `xml:"ETag"`
}

func (f *fakeS3) complete(w http.ResponseWriter, name, upload string, body []byte) {
	var wanted struct {
		XMLName xml.Name      `xml:"CompleteMultipartUpload"`
		Part    []listedPiece `xml:"Part"`
	}
	pieces, begun := f.uploads[upload]
	switch err := xml.Unmarshal(body, &wanted); {
	case !begun:
		refuse(w, http.StatusNotFound, "NoSuchUpload")
		return
	case err != nil || len(wanted.Part) == 0:
		refuse(w, http.StatusBadRequest, "MalformedXML")
		return
	}
	var whole []byte
	for i, part := range wanted.Part {
		piece, there := pieces[part.PartNumber]
		if !there || part.ETag != etag(piece) {
			refuse(w, http.StatusBadRequest, "InvalidPart")
			return
		}
		if i < len(wanted.Part)-1 && len(piece) < remotePiece {
			refuse(w, http.StatusBadRequest, "EntityTooSmall")
			return
		}
		whole = append(whole, piece...)
	}
	if !slices.IsSortedFunc(wanted.Part, func(a, b listedPiece) int { return cmp.Compare(a.PartNumber, b.PartNumber) }) {
		refuse(w, http.StatusBadRequest, "InvalidPartOrder")
		return
	}
	f.objects[name] = whole
	delete(f.uploads, upload)
	answerXML(w, "CompleteMultipartUploadResult", "<ETag>"+etag(whole)+"-1</ETag>")
}

func (f *fakeS3) list(w http.ResponseWriter, prefix string) {
	var found strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		if strings.HasPrefix(name, prefix) {
			fmt.Fprintf(&found, "<Contents><Key>%s</Key><Size>%d</Size></Contents>", name, len(f.objects[name]))
		}
	}
	answerXML(w, "ListBucketResult", "<Name>backups</Name><IsTruncated>false</IsTruncated>"+found.String())
}

func etag(content []byte) string {
	sum := md5.Sum(content)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func answerXML(w http.ResponseWriter, root, content string) {
	w.Header().Set("Content-Type", "application/xml")
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<%s>%s</%s>", root, content, root) // the client may be gone
}
