package render

import (
	"encoding/base64"
	"fmt"
)

// Credentials are the contents of a kubeconfig, all PEM.
type Credentials struct {
	Authority   []byte
	Certificate []byte
	Key         []byte
}

// Kubeconfig returns a kubeconfig that can be copied anywhere: it refers to no file.
func Kubeconfig(c Cluster, user string, credentials Credentials) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: devcluster
  cluster:
    server: https://%s
    certificate-authority-data: %s
users:
- name: %[3]s
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
contexts:
- name: devcluster
  context: {cluster: devcluster, user: %[3]q}
current-context: devcluster
`, c.APIAddress(), encode(credentials.Authority), user, encode(credentials.Certificate), encode(credentials.Key))
}
