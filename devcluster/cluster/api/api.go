// Package api sends the few requests to the dev cluster's API server that are needed to start and describe a cluster.
package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const requestTimeout = 10 * time.Second

// Client sends requests as the cluster's administrator.
type Client struct {
	base string
	http *http.Client
}

// New reads the administrator's key pair in the folder of certificates. The
// environment's proxies are never used: the API server is on this machine.
func New(address, pki string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("read admin certificate: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("read certificate authority: ca.crt holds no certificate")
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
	return &Client{base: "https://" + address, http: &http.Client{Transport: transport, Timeout: requestTimeout}}, nil
}

// Ready returns an error unless the API server reports that it is ready.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodGet, "/readyz", "", nil)
	return err
}

// Get reads an object or list.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	body, err := c.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("get %s: %w", path, err)
	}
	return nil
}

// Apply creates or corrects an object by server-side apply.
func (c *Client) Apply(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("apply %s: %w", path, err)
	}
	_, err = c.do(ctx, http.MethodPatch, path+"?fieldManager=devcluster&force=true", "application/apply-patch+yaml", body)
	return err
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("send a request to the API server: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %w", method, path, refusal(response.StatusCode, content))
	}
	return content, nil
}

// RefusedError is an answer with another status than success.
type RefusedError struct {
	Code    int
	Message string
}

func (r *RefusedError) Error() string {
	return fmt.Sprintf("the API server answered %d: %s", r.Code, r.Message)
}

func refusal(code int, body []byte) error {
	var status struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &status); err != nil || status.Message == "" {
		status.Message = string(bytes.TrimSpace(body))
	}
	return &RefusedError{Code: code, Message: status.Message}
}
