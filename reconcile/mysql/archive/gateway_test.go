package archive

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

const (
	gatewayAccess = "tester"
	gatewaySecret = "testers-secret"
	gatewayBucket = "backups"
	// gatewayStart is the maximum time until the gateway listens.
	gatewayStart = 30 * time.Second
)

// gateway is a running S3 server.
type gateway struct{ url, root string }

// startGateway builds the S3 gateway in testdata/gateway, once, and starts it with a bucket.
func startGateway(t *testing.T) gateway {
	t.Helper()
	if testing.Short() || withRace {
		t.Skip("needs a real S3 server: make test-unit runs it, without the race detector")
	}
	program, err := filepath.Abs("../../../.dev/bin/s3gateway")
	if err != nil {
		t.Fatal(err)
	}
	// The build does nothing if the program is up to date.
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", program, ".")
	build.Dir, build.Env = "testdata/gateway", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the S3 gateway: %v\n%s", err, output)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, gatewayBucket), 0o700); err != nil {
		t.Fatal(err)
	}
	return runGateway(t, program, root)
}

// runGateway starts the program on a free port, and stops it at the end of the test.
func runGateway(t *testing.T, program, root string) gateway {
	t.Helper()
	address := freeAddress(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, program, "--addr", address, "--auth-key", gatewayAccess+","+gatewaySecret, root)
	if err := command.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait() // it was killed
	})
	deadline := time.Now().Add(gatewayStart)
	for {
		response, err := http.Get("http://" + address + "/")
		if err == nil {
			_ = response.Body.Close() // any answer is enough
			return gateway{url: "http://" + address, root: root}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the S3 gateway does not listen: %v", err)
		}
		if err := pause(t.Context(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// location is a folder of the gateway's bucket, reached at an endpoint: the gateway's own, or that of a proxy in front of it.
func (g gateway) location(t *testing.T, endpoint, folder string) Location {
	t.Helper()
	return Location{
		URL:            fmt.Sprintf("s3://%s/%s?region=us-east-1&use_path_style=true&endpoint=%s", gatewayBucket, folder, endpoint),
		CredentialsDir: secretDir(t, map[string]string{destination.KeyAccess: gatewayAccess, destination.KeySecret: gatewaySecret + "\n", destination.KeyEndpoint: endpoint}),
	}
}

// secretDir returns a folder with a Secret's keys as files.
func secretDir(t *testing.T, keys map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range keys {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
