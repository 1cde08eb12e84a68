package main

import (
	"slices"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/schema"
)

// limits returns the limits that the policies set for an operator of these kinds.
func limits(account deploy.Account, kinds []schema.Kind) (deploy.Limits, error) {
	serves := func(name string) bool {
		return slices.ContainsFunc(kinds, func(kind schema.Kind) bool { return kind.Kind == name })
	}
	one := deploy.Limits{Account: account, Webhook: webhookName, Restarts: serves("ConfigMonitor"), PlainPods: serves("TDSet")}
	needed, err := permissions(kinds, grants{})
	if err != nil {
		return deploy.Limits{}, err
	}
	one.ReadsSecrets = len(needed.SeparateSecrets().Secrets) > 0
	for _, kind := range kinds {
		one.Kinds = append(one.Kinds, apischema.GroupResource{Group: kind.Group, Resource: kind.Plural})
	}
	return one, nil
}

// policy returns the policies that the API server enforces on the operator in addition to its permissions.
func (o manifestOptions) policy(kinds []schema.Kind) ([][]byte, error) {
	of, err := limits(o.account, kinds)
	if err != nil {
		return nil, err
	}
	document, err := deploy.Render(deploy.Policy(of))
	return [][]byte{document}, err
}
