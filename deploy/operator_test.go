package deploy

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// TestOperatorPassesPodSecurityRestricted also checks that the Deployment requests a token, which its account's default may withhold.
func TestOperatorPassesPodSecurityRestricted(t *testing.T) {
	t.Parallel()
	deployment, is := Operator(Account{"ops", Name}, "i:1", nil)[0].(*appsv1.Deployment)
	if !is {
		t.Fatal("the first object is no Deployment")
	}
	template := deployment.Spec.Template
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	if mounted := template.Spec.AutomountServiceAccountToken; mounted == nil || !*mounted {
		t.Error("it does not request its token")
	}
}
