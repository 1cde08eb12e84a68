package main

import "testing"

func TestComponent(t *testing.T) {
	t.Parallel()
	table := map[string]runner{"kubectl": nil, "etcd": nil}
	tests := map[string]struct {
		argv []string
		want string
		args int
	}{
		"the first argument names the component": {argv: []string{"/x/kubernetes", "etcd", "--name=a"}, want: "etcd", args: 1},
		"a link's name is the component":         {argv: []string{"/x/kubectl", "etcd"}, want: "kubectl", args: 1},
		"no argument names none":                 {argv: []string{"kubernetes"}, want: ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, args := component(table, tc.argv)
			if got != tc.want || len(args) != tc.args {
				t.Errorf("component %q with %q", got, args)
			}
		})
	}
}
