package vcenter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// The helper serves an API over HTTP/2 on its standard input and output. It serves many calls at the same time, and ends a call when its
// caller no longer waits.
const (
	pathLook = "/look"
	pathDo   = "/do"
	maxBody  = 64 << 20
)

// Serve answers the calls on one connection with an API, until the connection ends. The helper runs it.
func Serve(conn net.Conn, api API) error {
	routes := http.NewServeMux()
	routes.HandleFunc("POST "+pathLook, func(w http.ResponseWriter, r *http.Request) {
		var group Group
		answer(w, r, &group, func(ctx context.Context) (any, error) { return api.Look(ctx, group) })
	})
	routes.HandleFunc("POST "+pathDo, func(w http.ResponseWriter, r *http.Request) {
		var order Order
		answer(w, r, &order, func(ctx context.Context) (any, error) { return struct{}{}, api.Do(ctx, order) })
	})
	ended := make(chan struct{})
	server := &http.Server{Handler: routes, Protocols: plainHTTP2(), ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(ended)
		}
	}}
	err := server.Serve(&singleListener{conn: conn, ended: ended})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func answer(w http.ResponseWriter, r *http.Request, question any, ask func(context.Context) (any, error)) {
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	told, err := ask(r.Context())
	var known *Error
	switch {
	case errors.As(err, &known):
		w.WriteHeader(http.StatusUnprocessableEntity)
		told = known
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// A caller that has stopped waiting needs no answer.
	_ = json.NewEncoder(w).Encode(told)
}

func plainHTTP2() *http.Protocols {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return protocols
}

// singleListener is a listener with one connection.
type singleListener struct {
	conn  net.Conn
	ended chan struct{}
	given bool
}

// Accept returns the connection, and io.EOF when it has ended.
func (s *singleListener) Accept() (net.Conn, error) {
	if !s.given {
		s.given = true
		return s.conn, nil
	}
	<-s.ended
	return nil, io.EOF
}

func (s *singleListener) Close() error   { return nil }
func (s *singleListener) Addr() net.Addr { return s.conn.LocalAddr() }

// client is an API at the other end of a connection.
type client struct {
	http *http.Client
}

var errHelperGone = errors.New("the helper has ended")

// newClient returns a client of a connection. It pings an end that has been silent for the time ping. If no answer comes within the same
// time, it closes the connection.
func newClient(conn net.Conn, ping time.Duration) client {
	given := make(chan net.Conn, 1)
	given <- conn
	dial := func(context.Context, string, string) (net.Conn, error) {
		select {
		case one := <-given:
			return one, nil
		default:
			return nil, errHelperGone
		}
	}
	return client{http: &http.Client{Transport: &http.Transport{
		Protocols: plainHTTP2(), DialContext: dial, HTTP2: &http.HTTP2Config{SendPingTimeout: ping, PingTimeout: ping},
	}}}
}

// call sends one call. An error that is no *Error means that the helper or ctx has ended.
func (c client) call(ctx context.Context, path string, question, told any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encode a call: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://helper"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content := json.NewDecoder(io.LimitReader(response.Body, maxBody))
	switch response.StatusCode {
	case http.StatusOK:
		return content.Decode(told)
	case http.StatusUnprocessableEntity:
		known := &Error{}
		if err := content.Decode(known); err != nil {
			return err
		}
		return known
	default:
		said, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return fmt.Errorf("the helper answers %s: %s", response.Status, said)
	}
}

// Pipe returns a connection over the ends of two pipes.
func Pipe(in io.ReadCloser, out io.WriteCloser) net.Conn {
	return &pipe{ReadCloser: in, out: out}
}

// pipe is a connection without time limits: its callers have them.
type pipe struct {
	io.ReadCloser
	out io.WriteCloser
}

func (p *pipe) Write(content []byte) (int, error)  { return p.out.Write(content) }
func (p *pipe) Close() error                       { return errors.Join(p.out.Close(), p.ReadCloser.Close()) }
func (p *pipe) LocalAddr() net.Addr                { return &net.UnixAddr{Name: os.Args[0], Net: "pipe"} }
func (p *pipe) RemoteAddr() net.Addr               { return p.LocalAddr() }
func (p *pipe) SetDeadline(_ time.Time) error      { return nil }
func (p *pipe) SetReadDeadline(_ time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(_ time.Time) error { return nil }
