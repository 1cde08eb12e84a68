package archive

import (
	"context"
	"encoding/pem"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func multipartUploadsOf(bucket *s3Bucket) *s3.ListMultipartUploadsInput {
	prefix := bucket.prefix()
	return &s3.ListMultipartUploadsInput{Bucket: &bucket.place.Bucket, Prefix: &prefix}
}

// slowly returns the address of a slow relay to a server: 64 KiB every 50 ms, without buffers that would hide it.
func slowly(t *testing.T, to string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go relay(t.Context(), conn, strings.TrimPrefix(to, "http://"))
		}
	}()
	return "http://" + listener.Addr().String()
}

// relay forwards a connection, slowly from the client to the server.
func relay(ctx context.Context, client net.Conn, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	if conn, ok := client.(*net.TCPConn); ok {
		_ = conn.SetReadBuffer(64 << 10) // with a larger buffer the test fails, because the transfer is not slow
	}
	go func() {
		_, _ = io.Copy(client, server) // ends when either does
		_ = client.Close()
	}()
	for {
		if _, err := io.CopyN(server, client, 64<<10); err != nil {
			_ = server.Close()
			return
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
}
