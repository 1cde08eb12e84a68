package archive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // stores check it, see digest
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

const (
	// uploadPiece is how many bytes of an object are sent at a time, uploadsAtOnce how many pieces are sent concurrently. S3 takes 10,000
	// pieces of at least 5 MiB each ("Amazon S3 multipart upload limits").
	uploadPiece   = 8 << 20
	uploadsAtOnce = 2
	// abortLimit bounds how long aborting an upload may take. An upload is aborted also after the end of the context.
	abortLimit = 30 * time.Second
)

// s3Bucket is a folder in a bucket of S3, or of another store with the API of S3.
type s3Bucket struct {
	client *s3.Client
	place  destination.Place
	// pieceSize is how many bytes are sent at a time.
	pieceSize int
	// buffers are for pieces. There are as many as can be in use.
	buffers chan []byte
}

func newS3Bucket(client *s3.Client, place destination.Place, pieceSize int) *s3Bucket {
	b := &s3Bucket{client: client, place: place, pieceSize: pieceSize, buffers: make(chan []byte, uploadsAtOnce+1)}
	for range uploadsAtOnce + 1 {
		b.buffers <- nil
	}
	return b
}

// piece reads the next piece of a body into a buffer, which the caller must put back. The error of the last one is io.EOF or
// io.ErrUnexpectedEOF.
func (b *s3Bucket) piece(body io.Reader) ([]byte, error) {
	buffer := <-b.buffers
	if buffer == nil {
		buffer = make([]byte, b.pieceSize)
	}
	n, err := io.ReadFull(body, buffer[:b.pieceSize])
	return buffer[:n], err
}

func (b *s3Bucket) put(ctx context.Context, name string, body io.Reader) error {
	first, err := b.piece(body)
	if err == nil {
		return b.putLarge(ctx, name, first, body)
	}
	defer func() { b.buffers <- first }()
	if !isShort(err) {
		return err
	}
	_, err = b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.place.Bucket, Key: b.key(name), Body: bytes.NewReader(first), ContentMD5: digest(first),
	})
	return err
}

// digest returns the MD5 of the content: the store refuses content that arrives with another one. It is the only checksum that both S3 and
// Google's XML API have always had. It protects against accidents only.
func digest(content []byte) *string {
	sum := md5.Sum(content) //nolint:gosec // see above
	return aws.String(base64.StdEncoding.EncodeToString(sum[:]))
}

// putLarge stores an object in pieces.
func (b *s3Bucket) putLarge(ctx context.Context, name string, first []byte, body io.Reader) error {
	begun, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &b.place.Bucket, Key: b.key(name)})
	if err != nil {
		b.buffers <- first
		return err
	}
	upload := &upload{s3Bucket: b, name: name, id: begun.UploadId}
	err = upload.pieces(ctx, first, body)
	if err == nil {
		err = upload.complete(ctx)
	}
	if err != nil {
		upload.abort(ctx)
	}
	return err
}

// upload is a multipart upload in progress.
type upload struct {
	*s3Bucket
	name string
	id   *string
	size int64
	// parts are added by the goroutines that send them; lock guards them.
	lock  sync.Mutex
	parts []types.CompletedPart
}

// tag records the ETag of a piece that the store has.
func (u *upload) tag(number int32, tag *string) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.parts = append(u.parts, types.CompletedPart{PartNumber: &number, ETag: tag})
}

// pieces sends all of a body. The caller has already read the first piece.
func (u *upload) pieces(ctx context.Context, piece []byte, body io.Reader) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploadsAtOnce)
	var read error
	for number := int32(1); len(piece) > 0; number++ {
		u.size += int64(len(piece))
		content := piece
		group.Go(func() error {
			defer func() { u.buffers <- content }()
			sent, err := u.client.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: &u.place.Bucket, Key: u.key(u.name), UploadId: u.id, PartNumber: &number, Body: bytes.NewReader(content), ContentMD5: digest(content),
			})
			if err != nil {
				return err
			}
			u.tag(number, sent.ETag)
			return nil
		})
		piece = nil
		if read == nil && ctx.Err() == nil {
			piece, read = u.piece(body)
		}
	}
	if piece != nil {
		u.buffers <- piece
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if read != nil && !isShort(read) {
		return read
	}
	slices.SortFunc(u.parts, func(a, b types.CompletedPart) int { return cmp.Compare(*a.PartNumber, *b.PartNumber) })
	return nil
}

// complete makes an object from the pieces. If the answer to a first attempt was lost, the second one finds no upload, but the object.
func (u *upload) complete(ctx context.Context) error {
	_, err := u.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.place.Bucket, Key: u.key(u.name), UploadId: u.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
	})
	if code, _ := answer(err); code != "NoSuchUpload" {
		return err
	}
	found, headErr := u.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &u.place.Bucket, Key: u.key(u.name)})
	if headErr != nil || aws.ToInt64(found.ContentLength) != u.size {
		return err
	}
	return nil
}

// abort aborts the upload. If that fails, sweep aborts it later.
func (u *upload) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortLimit)
	defer cancel()
	_, _ = u.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &u.place.Bucket, Key: u.key(u.name), UploadId: u.id}) // see above
}

func (b *s3Bucket) get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	input := &s3.GetObjectInput{Bucket: &b.place.Bucket, Key: b.key(name)}
	if offset > 0 {
		input.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	found, err := b.client.GetObject(ctx, input)
	code, status := answer(err)
	switch {
	case err == nil:
		return found.Body, nil
	case code == "NoSuchKey", status == http.StatusNotFound && code != "NoSuchBucket":
		return nil, errMissing(name)
	case status == http.StatusRequestedRangeNotSatisfiable:
		return http.NoBody, nil // everything was read before
	}
	return nil, err
}

func (b *s3Bucket) list(ctx context.Context) ([]object, error) {
	prefix := b.prefix()
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.place.Bucket, Prefix: &prefix, Delimiter: aws.String("/")})
	var objects []object
	been := seenTokens{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, found := range page.Contents {
			if name := strings.TrimPrefix(aws.ToString(found.Key), prefix); name != "" {
				objects = append(objects, object{name: name, size: aws.ToInt64(found.Size)})
			}
		}
		if err := been.next(aws.ToBool(page.IsTruncated), aws.ToString(page.NextContinuationToken)); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (b *s3Bucket) remove(ctx context.Context, name string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.place.Bucket, Key: b.key(name)})
	return err
}

// sweep aborts unfinished uploads. Where the credentials may not list uploads, or the store does not support this, the lifecycle rules of
// the bucket must delete them.
func (b *s3Bucket) sweep(ctx context.Context) error {
	prefix := b.prefix()
	pages := s3.NewListMultipartUploadsPaginator(b.client, &s3.ListMultipartUploadsInput{Bucket: &b.place.Bucket, Prefix: &prefix})
	been := seenTokens{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if kind := httpKind(err); err != nil && (kind == destination.KindRefused || kind == destination.KindInvalid) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := b.abortAll(ctx, page.Uploads); err != nil {
			return err
		}
		if err := been.next(aws.ToBool(page.IsTruncated), aws.ToString(page.NextKeyMarker)+"\n"+aws.ToString(page.NextUploadIdMarker)); err != nil {
			return err
		}
	}
	return nil
}

// abortAll aborts the uploads whose names this package uses.
func (b *s3Bucket) abortAll(ctx context.Context, uploads []types.MultipartUpload) error {
	for _, found := range uploads {
		if !isArchiveFile(strings.TrimPrefix(aws.ToString(found.Key), b.prefix())) {
			continue
		}
		_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.place.Bucket, Key: found.Key, UploadId: found.UploadId})
		if code, status := answer(err); err != nil && code != "NoSuchUpload" && status != http.StatusNotFound {
			return err
		}
	}
	return nil
}

func (b *s3Bucket) key(name string) *string { return aws.String(b.place.Key(name)) }

func (b *s3Bucket) prefix() string {
	if b.place.Folder == "" {
		return ""
	}
	return b.place.Folder + "/"
}
