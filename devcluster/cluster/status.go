package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Kubeconfig is the path of the administrator's kubeconfig of the cluster in the
// folder; an error if there is none.
func Kubeconfig(dir string) (string, error) {
	o, err := Options{Dir: dir}.complete()
	if err != nil {
		return "", err
	}
	path := folder(o.Dir).kubeconfig()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find kubeconfig: no cluster in %s: start one with \"go run ./devcluster up\"", o.Dir)
	}
	return path, nil
}
