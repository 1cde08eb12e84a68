// Package deploy makes the manifests that an administrator applies for the operator: its permissions and its Deployment. The permissions
// come from the code that uses them (the rules of the controllers, of the engine, and for definitions). So the manifests, the check at
// start and the message about missing permissions cannot disagree. samples/ holds examples for users. The YAML files in this directory are
// the output of `mysql-operator manifests`.
package deploy
