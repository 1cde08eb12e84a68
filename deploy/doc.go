// Package deploy is what an administrator gives the operator: rights, and a place to run. The rights come from the code that uses them
// (the controllers' rules, the engine's, those for definitions), so manifests, the check at start and the message about what is missing
// cannot disagree. samples/ holds documents users begin with; the YAML files beside are the output of `mysql-operator manifests`.
package deploy
