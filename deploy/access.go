package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// atOnce is how many access reviews are sent at the same time.
const atOnce = 16

// Place is where permissions are needed: a namespace, or the whole cluster if empty.
type Place string

func (p Place) String() string {
	if p == "" {
		return "in the whole cluster"
	}
	return "in namespace " + string(p)
}

// MissingPermissions holds the missing permissions of a user.
type MissingPermissions struct {
	// User is the user's name as the API server knows it.
	User string
	// Missing are the rules that are missing, by place.
	Missing map[Place][]rbacv1.PolicyRule
}

// None reports whether nothing is missing.
func (s MissingPermissions) None() bool {
	return len(s.Missing) == 0
}

// Needs returns the permissions by place, for an operator that serves these namespaces (all if none are named).
func Needs(account Account, namespaces []string, rights Permissions) map[Place][]rbacv1.PolicyRule {
	needs := map[Place][]rbacv1.PolicyRule{Place(account.Namespace): rights.Own}
	if len(rights.Definitions) > 0 {
		needs[""] = slices.Clone(rights.Definitions)
	}
	places := namespaces
	if len(places) == 0 {
		places = []string{""}
	}
	for _, place := range places {
		needs[Place(place)] = append(slices.Clone(needs[Place(place)]), rights.Objects...)
	}
	return needs
}

// FindMissingPermissions asks the API server which of the needed permissions the configuration's user does not have
// (SelfSubjectAccessReview, which every authenticated user may create).
func FindMissingPermissions(ctx context.Context, config *rest.Config, needs map[Place][]rbacv1.PolicyRule) (MissingPermissions, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil // bounded by atOnce
	reviews, err := authorizationclient.NewForConfig(own)
	if err != nil {
		return MissingPermissions{}, fmt.Errorf("make a client for access reviews: %w", err)
	}
	missing := map[Place][]rbacv1.PolicyRule{}
	for place, rules := range needs {
		lacking, err := ask(ctx, reviews, place, permissions(rules))
		if err != nil {
			return MissingPermissions{}, err
		}
		if len(lacking) > 0 {
			missing[place] = Compact(lacking)
		}
	}
	if len(missing) == 0 {
		return MissingPermissions{}, nil
	}
	return MissingPermissions{User: whoAmI(ctx, own), Missing: missing}, nil
}

// ask returns, as rules, those of the permissions that are denied.
func ask(ctx context.Context, reviews authorizationclient.AuthorizationV1Interface, place Place, wanted []permission) ([]rbacv1.PolicyRule, error) {
	denied, faults := make([]bool, len(wanted)), make([]error, len(wanted))
	slots := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for at, one := range wanted {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			answer, err := reviews.SelfSubjectAccessReviews().Create(ctx, question(place, one), metav1.CreateOptions{})
			if err != nil {
				faults[at] = fmt.Errorf("ask the API server whether the operator may %s %s %s: %w", one.verb, one.resource, place, err)
				return
			}
			denied[at] = !answer.Status.Allowed
		})
	}
	group.Wait()

	lacking := []rbacv1.PolicyRule{}
	for at, one := range wanted {
		if faults[at] != nil {
			return nil, faults[at]
		}
		if denied[at] {
			rule := rbacv1.PolicyRule{APIGroups: []string{one.group}, Resources: []string{one.resource}, Verbs: []string{one.verb}}
			if one.name != "" {
				rule.ResourceNames = []string{one.name}
			}
			lacking = append(lacking, rule)
		}
	}
	return lacking, nil
}

func question(place Place, one permission) *authorizationv1.SelfSubjectAccessReview {
	resource, subresource, _ := strings.Cut(one.resource, "/")
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: string(place), Group: one.group, Resource: resource, Subresource: subresource, Name: one.name, Verb: one.verb,
		},
	}}
}

// whoAmI returns the user's name as the API server knows it (SelfSubjectReview). It is only for a message, so an unknown name is not an
// error.
func whoAmI(ctx context.Context, config *rest.Config) string {
	unknown := "the operator's user"
	client, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return unknown
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return unknown
	}
	return review.Status.UserInfo.Username
}
