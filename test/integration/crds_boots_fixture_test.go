package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/migration"
	"github.com/mysql-operator/mysql-operator/crds/objects"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// bootIdentity is whose definitions the boots of these tests bring.
var bootIdentity = crds.Identity{Owner: "boot-operator", Domain: "boots.example.com"} //nolint:gochecknoglobals // a constant, but Go has none of structs

// product is a kind whose operator has had three releases:
//
//	release 1: v1alpha1, stored
//	release 2: v1 is added and stored, v1alpha1 is still served; spec.notes is new
//	release 3: v1alpha1 is gone; spec.tags is new
type product struct {
	t      *testing.T
	server *apiserver.Server
	plural string
}

const releases = 3

func (p product) group() string { return "boots.example.com" }
func (p product) name() string  { return p.plural + "." + p.group() }

func (p product) document(release int) string {
	version := func(name string, storage bool, fields ...string) string {
		properties := []string{"size: {type: integer, minimum: 0}", "colour: {type: string}"}
		for _, field := range fields {
			properties = append(properties, field+": {type: string}")
		}
		return fmt.Sprintf(`
    - name: %s
      served: true
      storage: %t
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}, status: {type: object, properties: {seen: {type: integer}}}}}}`,
			name, storage, strings.Join(properties, ", "))
	}
	versions := map[int]string{
		1: version("v1alpha1", true),
		2: version("v1", true, "notes") + version("v1alpha1", false, "notes"),
		3: version("v1", true, "notes", "tags"),
	}[release]
	kind := strings.ToUpper(p.plural[:1]) + strings.TrimSuffix(p.plural[1:], "s")
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s, annotations: {%s: "%d"}}
spec:
  group: %s
  scope: Namespaced
  names: {plural: %s, singular: %s, kind: %s, listKind: %sList}
  versions:%s
`, p.name(), bootIdentity.VersionAnnotation(), release, p.group(), p.plural, strings.ToLower(kind), kind, kind, versions)
}

func (p product) definition(release int) crds.Definition {
	uses := "v1"
	if release == 1 {
		uses = "v1alpha1"
	}
	definition, err := bootIdentity.Parse([]byte(p.document(release)), uses)
	if err != nil {
		p.t.Fatal(err)
	}
	return definition
}

// operator is a process of a release that can be disturbed.
type bootOperator struct {
	product
	release int
	config  *rest.Config
	timeout time.Duration
}

func (p product) operator(release int, fault *fault) bootOperator {
	config := rest.CopyConfig(p.server.Config)
	if fault != nil {
		config.Wrap(fault.wrap)
	}
	return bootOperator{product: p, release: release, config: config, timeout: 20 * time.Second}
}

// boot does what an operator does at its start.
func (o bootOperator) boot(ctx context.Context) (crds.Result, error) {
	installer, err := o.installer()
	if err != nil {
		return crds.Result{}, err
	}
	results, err := installer.Ensure(ctx, []crds.Definition{o.definition(o.release)})
	if err != nil {
		return crds.Result{}, err
	}
	return results[0], nil
}

func (o bootOperator) installer() (crds.Installer, error) {
	api, err := crds.NewAPI(o.config)
	if err != nil {
		return crds.Installer{}, err
	}
	checker, err := objects.New(o.config)
	return crds.Installer{API: api, Objects: checker, Timeout: o.timeout, Log: logr.Discard()}, err
}

// lead does what the leader does after it: rewriting what is stored in other versions, and dropping those.
func (o bootOperator) lead(ctx context.Context) error {
	migrator, err := migration.New(o.config, bootIdentity.FieldManager()+"-migration", bootIdentity.MigrationAnnotation())
	if err != nil {
		return err
	}
	migrator.Settle, migrator.Rate, migrator.RetryTimeout, migrator.Log = -1, -1, 5*time.Second, logr.Discard()
	if _, err := migrator.Run(ctx, o.name()); err != nil {
		return err
	}
	_, err = o.boot(ctx)
	return err
}

// fault is what happens to one request of an operator, the nth; all others go through.
type fault struct {
	at   int64
	what func(send func() (*http.Response, error), request *http.Request) (*http.Response, error)
	seen atomic.Int64
}

func (f *fault) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if number := f.seen.Add(1); number != f.at {
			return next.RoundTrip(request)
		}
		return f.what(func() (*http.Response, error) { return next.RoundTrip(request) }, request)
	})
}

// faults are the ways in which a request goes wrong. kill ends the process.
func faults(kill func()) map[string]func(func() (*http.Response, error), *http.Request) (*http.Response, error) {
	answer := func(code int, header http.Header) func(func() (*http.Response, error), *http.Request) (*http.Response, error) {
		return func(_ func() (*http.Response, error), request *http.Request) (*http.Response, error) {
			reason := map[int]string{409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}[code]
			body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"injected","code":%d}`, reason, code)
			if header == nil {
				header = http.Header{}
			}
			header.Set("Content-Type", "application/json")
			return &http.Response{StatusCode: code, Header: header.Clone(), Body: io.NopCloser(strings.NewReader(body)), Request: request, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
		}
	}
	afterwards := func(then func() (*http.Response, error)) func(func() (*http.Response, error), *http.Request) (*http.Response, error) {
		return func(send func() (*http.Response, error), _ *http.Request) (*http.Response, error) {
			if response, err := send(); err == nil {
				_ = response.Body.Close()
			}
			return then()
		}
	}
	return map[string]func(func() (*http.Response, error), *http.Request) (*http.Response, error){
		"409":            answer(http.StatusConflict, nil),
		"429":            answer(http.StatusTooManyRequests, http.Header{"Retry-After": []string{"1"}}),
		"500":            answer(http.StatusInternalServerError, nil),
		"503":            answer(http.StatusServiceUnavailable, nil),
		"504, in effect": afterwards(func() (*http.Response, error) { return answer(http.StatusGatewayTimeout, nil)(nil, nil) }),
		"reset": func(func() (*http.Response, error), *http.Request) (*http.Response, error) {
			return nil, syscall.ECONNRESET
		},
		"reset, in effect": afterwards(func() (*http.Response, error) { return nil, syscall.ECONNRESET }),
		"killed before": func(func() (*http.Response, error), *http.Request) (*http.Response, error) {
			kill()
			return nil, context.Canceled
		},
		"killed afterwards": afterwards(func() (*http.Response, error) { kill(); return nil, context.Canceled }),
	}
}

// isDisturbance reports whether an operator could not finish because of a fault. Kubernetes would start that operator again.
func isDisturbance(err error) bool {
	var refused *crds.RefusedError
	return err != nil && !errors.As(err, &refused)
}

func (p product) client(version string) dynamic.NamespaceableResourceInterface {
	return p.server.Dynamic.Resource(apischema.GroupVersionResource{Group: p.group(), Version: version, Resource: p.plural})
}

func (p product) object(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": p.group() + "/" + version, "kind": strings.ToUpper(p.plural[:1]) + strings.TrimSuffix(p.plural[1:], "s"),
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func (p product) create(ctx context.Context, version, namespace, name string, spec map[string]any) error {
	_, err := p.client(version).Namespace(namespace).Create(ctx, p.object(version, name, spec), metav1.CreateOptions{FieldValidation: "Strict"})
	return err
}

// live is the definition in the cluster; nil if there is none.
func (p product) live() *unstructured.Unstructured {
	p.t.Helper()
	object, err := p.server.Dynamic.Resource(definitionResource()).Get(p.t.Context(), p.name(), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return object
}

// remove ends the kind, so that the API server is not burdened with those of cases that are over.
func (p product) remove() {
	_ = p.server.Dynamic.Resource(definitionResource()).Delete(context.WithoutCancel(p.t.Context()), p.name(), metav1.DeleteOptions{})
}

// wantNewest holds the cluster to the third release's definition, with nothing left of those before.
func (p product) wantNewest() {
	p.t.Helper()
	live := p.live()
	if live == nil {
		p.t.Fatal("there is no definition")
	}
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	names := []string{}
	for _, version := range versions(p.t, live) {
		names = append(names, version["name"].(string))
	}
	if order := live.GetAnnotations()[bootIdentity.VersionAnnotation()]; order != "3" || strings.Join(stored, ",") != "v1" || strings.Join(names, ",") != "v1" {
		p.t.Errorf("the definition is of release %s with versions %v, stored %v", order, names, stored)
	}
}
