package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// fault is the problem that a proxy causes for a request.
type fault string

const (
	faultRefused  fault = "refused"   // the connection is closed before an answer
	faultStalled  fault = "stalled"   // no byte is transferred any more
	faultCutUp    fault = "cut up"    // the connection breaks in the middle of the request
	faultCutDown  fault = "cut down"  // the request is carried out, but the answer breaks off in the middle
	faultDropped  fault = "dropped"   // the request is carried out, and there is no answer at all
	faultFull     fault = "full"      // the store has no space
	faultDenied   fault = "denied"    // the credentials do not allow it
	faultSkewed   fault = "skewed"    // the store finds the client's clock wrong
	faultBusy     fault = "busy"      // the store asks for a later retry
	faultGarbled  fault = "garbled"   // a bit of the body is changed on the way
	faultNoBucket fault = "no bucket" // the bucket is gone
	// faultGarbledList is faultGarbled for lists of pieces, too.
	faultGarbledList fault = "garbled list"
	faultHalved      fault = "halved"       // the store keeps half of the body, and answers with success
	faultErrorIn200  fault = "error in 200" // an error comes with the status of success
	faultPage        fault = "page"         // a web page is the answer to everything
	faultEmpty       fault = "empty"        // the answer is only the status of success
	faultRedirected  fault = "redirected"   // everything is redirected
)

// faults returns all faults, with the kind of error that each causes if it lasts.
func faults() map[fault]destination.Kind {
	return map[fault]destination.Kind{
		faultRefused: destination.KindUnavailable, faultStalled: destination.KindUnavailable, faultCutUp: destination.KindUnavailable, faultCutDown: destination.KindUnavailable, faultDropped: destination.KindUnavailable,
		faultFull: destination.KindFull, faultDenied: destination.KindRefused, faultSkewed: destination.KindClockSkew, faultBusy: destination.KindUnavailable, faultGarbled: "", faultNoBucket: destination.KindNotFound,
	}
}

// passing reports whether requests are repeated after a fault.
func (f fault) passing() bool {
	return f != faultFull && f != faultDenied && f != faultNoBucket && f != faultSkewed
}

// proxy stands between a client and a gateway.
type proxy struct {
	server *httptest.Server
	behind *httputil.ReverseProxy

	lock  sync.Mutex
	count int
	// fault applies to the requests from number from up to, but not including, number until.
	fault       fault
	from, until int
	// broken is the method of the last request with a fault; elsewhere is the target of redirects.
	broken, elsewhere string
}

// newProxy starts a proxy; prepare may change the forwarded requests.
func newProxy(t *testing.T, gateway string, start func(http.Handler) *httptest.Server, prepare func(*http.Request)) *proxy {
	t.Helper()
	target, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{behind: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the signature covers it
			if prepare != nil {
				prepare(r.Out)
			}
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     nil,
	}}
	p.server = start(http.HandlerFunc(p.serve))
	p.server.Config.ErrorLog = nil
	t.Cleanup(p.server.Close)
	return p
}

// breakAt applies a fault to requests, counted from 0 from now on.
func (p *proxy) breakAt(f fault, from, until int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.fault, p.from, p.until, p.count = f, from, until, 0
}

// requests returns the number of requests since breakAt.
func (p *proxy) requests() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.count
}

func (p *proxy) next(method string) fault {
	p.lock.Lock()
	defer p.lock.Unlock()
	number := p.count
	p.count++
	if p.fault == "" || number < p.from || number >= p.until {
		return ""
	}
	p.broken = method
	return p.fault
}

// lastBroken returns the method of the last request with a fault.
func (p *proxy) lastBroken() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.broken
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	switch f := p.next(r.Method); f {
	case "":
		p.behind.ServeHTTP(w, r)
	case faultRefused:
		panic(http.ErrAbortHandler)
	case faultStalled:
		select {
		case <-r.Context().Done():
		case <-time.After(4 * time.Second):
		}
		panic(http.ErrAbortHandler)
	case faultCutUp:
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2) // the rest is lost
		panic(http.ErrAbortHandler)
	case faultCutDown, faultDropped:
		answer := httptest.NewRecorder()
		p.behind.ServeHTTP(answer, r)
		if f == faultCutDown && answer.Body.Len() > 1 {
			cutAnswer(w, answer)
		}
		panic(http.ErrAbortHandler)
	case faultGarbled, faultGarbledList:
		if r.ContentLength > 0 {
			r.Body = io.NopCloser(&garbling{from: r.Body, lists: f == faultGarbledList})
		}
		p.behind.ServeHTTP(w, r)
	case faultHalved:
		halve(r)
		p.behind.ServeHTTP(w, r)
	case faultErrorIn200:
		refuse(w, http.StatusOK, "InternalError")
	case faultPage:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><body>Log in to continue.</body></html>") // the client may be gone
	case faultEmpty:
		w.WriteHeader(http.StatusOK)
	case faultRedirected:
		http.Redirect(w, r, p.elsewhere+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	case faultFull:
		refuse(w, http.StatusInsufficientStorage, "QuotaExceeded")
	case faultDenied:
		refuse(w, http.StatusForbidden, "AccessDenied")
	case faultSkewed:
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		refuse(w, http.StatusForbidden, "RequestTimeTooSkewed")
	case faultBusy:
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
	case faultNoBucket:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	}
}

// halve forwards half of the body, and removes the checksums that would reveal it.
func halve(r *http.Request) {
	for _, name := range []string{"Content-Md5", "X-Amz-Content-Sha256", "X-Ms-Content-Crc64"} {
		r.Header.Del(name)
	}
	r.ContentLength /= 2
	r.Header.Set("Content-Length", fmt.Sprint(r.ContentLength))
	r.Body = readCloser{io.LimitReader(r.Body, r.ContentLength), r.Body}
}

// cutAnswer sends half of an answer whose headers announce all of it.
func cutAnswer(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2]) // it breaks anyhow
	_ = http.NewResponseController(w).Flush()                 // likewise
}

// refuse answers as S3 does.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>`+code+`</Code><Message>made by the test</Message></Error>`) // the client may be gone
}

// garbling changes one bit in the middle of what it reads. Lists of pieces are XML.
type garbling struct {
	from        io.Reader
	lists, done bool
}

func (g *garbling) Read(p []byte) (int, error) {
	n, err := g.from.Read(p)
	if n > 0 && !g.done && (g.lists || !bytes.HasPrefix(p[:n], []byte("<"))) {
		p[n/2] ^= 1
		g.done = true
	}
	if errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, err
}
