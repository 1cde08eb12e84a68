package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// maxBody bounds the size of a request. An API server stores no object larger than its --max-request-bytes (3 MiB), and sends the
	// objects that it reads from etcd one by one; but the API allows lists. Decoded JSON takes about ten times its size.
	maxBody = 16 << 20
	// maxAtOnce bounds the requests that are handled at the same time. Together with maxBody it bounds the memory that any client in the
	// cluster's network can make this process use.
	maxAtOnce = 8
)

// Outcome is why a conversion failed, for metrics; empty if it did not.
type Outcome string

const (
	// OutcomeConverted is success.
	OutcomeConverted Outcome = ""
	// OutcomeMalformed are requests and objects that could not be read.
	OutcomeMalformed Outcome = "malformed"
	// OutcomeUnknown are kinds and versions that are not in the registry.
	OutcomeUnknown Outcome = "unknown"
	// OutcomeRefused are objects that a converter returned an error for, or that became too large.
	OutcomeRefused Outcome = "refused"
	// OutcomePanic are objects that a converter panicked on.
	OutcomePanic Outcome = "panic"
	// OutcomeCanceled are objects that the caller no longer waits for.
	OutcomeCanceled Outcome = "canceled"
)

// Observation is about one converted object, or one malformed request (then GroupKind is empty). The number of values is bounded, because
// kinds and versions that the registry does not know are left empty.
type Observation struct {
	GroupKind schema.GroupKind
	From, To  string
	Outcome   Outcome
	Duration  time.Duration
}

// Handler answers ConversionReviews (apiextensions.k8s.io/v1). Other requests get a client error. A review always gets an answer with its
// uid. If one object cannot be converted, the whole answer is a Failure, because the API server accepts all objects or none. Handler
// ignores fields of a review that it does not know: newer API servers may have more.
type Handler struct {
	registry *Registry
	observe  func(Observation)
	slots    chan struct{}
}

// NewHandler returns a handler. It calls observe, if not nil, after every object, from several goroutines.
func NewHandler(registry *Registry, observe func(Observation)) *Handler {
	if observe == nil {
		observe = func(Observation) {}
	}
	return &Handler{registry: registry, observe: observe, slots: make(chan struct{}, maxAtOnce)}
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-r.Context().Done():
		return
	}
	began := time.Now()
	request, status, err := readReview(w, r)
	if err != nil {
		h.observe(Observation{Outcome: OutcomeMalformed, Duration: time.Since(began)})
		http.Error(w, err.Error(), status)
		return
	}
	review := apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"},
		Response: h.respond(r.Context(), request),
	}
	document, err := json.Marshal(review)
	if err != nil {
		http.Error(w, "encode the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document) // a client that left needs no answer
}

func readReview(w http.ResponseWriter, r *http.Request) (*apiextensionsv1.ConversionRequest, int, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("%s: send a ConversionReview by POST", r.Method)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("content type %q: send application/json", r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("read the request: it has more than %d bytes: send fewer objects at once", tooLarge.Limit)
	}
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("read the request: %w", err)
	}
	review := apiextensionsv1.ConversionReview{}
	if err := utiljson.Unmarshal(body, &review); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("decode the ConversionReview: %w", err)
	}
	if want := apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview"); review.GroupVersionKind() != want {
		return nil, http.StatusBadRequest, fmt.Errorf("decode the ConversionReview: it is %q of %q: set conversionReviewVersions to [v1]", review.Kind, review.APIVersion)
	}
	if review.Request == nil || review.Request.UID == "" || review.Request.DesiredAPIVersion == "" {
		return nil, http.StatusBadRequest, errors.New("decode the ConversionReview: request, request.uid or request.desiredAPIVersion is missing")
	}
	return review.Request, http.StatusOK, nil
}

func (h *Handler) respond(ctx context.Context, request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	converted := make([]runtime.RawExtension, 0, len(request.Objects))
	for index, raw := range request.Objects {
		document, err := h.convert(ctx, raw.Raw, request.DesiredAPIVersion)
		if err != nil {
			response.Result = failure(fmt.Errorf("objects[%d]: %w", index, err))
			return response
		}
		converted = append(converted, runtime.RawExtension{Raw: document})
	}
	response.ConvertedObjects = converted
	return response
}

func failure(err error) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity}
}

// panicError is a converter's panic.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the converter panicked: %v", e.value) }

// convert converts one object and reports it to observe.
func (h *Handler) convert(ctx context.Context, document []byte, to string) (converted []byte, err error) {
	seen := Observation{}
	began := time.Now()
	defer func() {
		seen.Outcome, seen.Duration = outcomeOf(err, seen.Outcome), time.Since(began)
		h.observe(seen)
	}()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(document, &object.Object); err != nil || object.Object == nil {
		seen.Outcome = OutcomeMalformed
		return nil, errors.New("decode the object: it is not a JSON object")
	}
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		seen.Outcome = OutcomeMalformed
		return nil, errors.New("decode the object: apiVersion or kind is missing")
	}
	seen.GroupKind, seen.From, seen.To = h.registry.labels(object, to)
	result, err := h.convertRecovering(object, to)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result.Object)
}

// convertRecovering converts an object, and returns a panic of a converter as an error.
func (h *Handler) convertRecovering(object *unstructured.Unstructured, to string) (result *unstructured.Unstructured, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("convert %s: to %s: %w", describe(object), to, &panicError{value})
		}
	}()
	return h.registry.Convert(object, to)
}

func outcomeOf(err error, known Outcome) Outcome {
	panicked := (*panicError)(nil)
	switch {
	case err == nil || known != "":
		return known
	case errors.As(err, &panicked):
		return OutcomePanic
	case errors.Is(err, ErrUnknown):
		return OutcomeUnknown
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return OutcomeCanceled
	}
	return OutcomeRefused
}

// labels returns the known parts of a conversion, for metrics.
func (r *Registry) labels(object *unstructured.Unstructured, to string) (of schema.GroupKind, fromVersion, toVersion string) {
	from := object.GroupVersionKind()
	known, found := r.kinds[from.GroupKind()]
	if !found {
		return schema.GroupKind{}, "", ""
	}
	if known.knows(from.Version) {
		fromVersion = from.Version
	}
	if target, err := schema.ParseGroupVersion(to); err == nil && known.knows(target.Version) {
		toVersion = target.Version
	}
	return from.GroupKind(), fromVersion, toVersion
}
