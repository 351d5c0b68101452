// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig is the path of the administrator's kubeconfig (group system:masters).
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir(), "kubeconfig") }

// Config returns a client configuration of the administrator, without a client-side rate limit.
func (c *Cluster) Config() *rest.Config {
	config := rest.CopyConfig(c.config)
	config.QPS = -1
	return config
}

// KubeconfigFor returns the path of a kubeconfig with a client certificate for that user and groups.
func (c *Cluster) KubeconfigFor(user string, groups ...string) (string, error) {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{user}, groups...), "\n")))
	path := c.componentKubeconfig("user-" + hex.EncodeToString(sum[:6]))
	return path, c.writeKubeconfig(path, user, groups...)
}

func (c *Cluster) componentKubeconfig(name string) string {
	return filepath.Join(c.Dir(), "kubeconfigs", name)
}

func (c *Cluster) writeKubeconfig(path, user string, groups ...string) error {
	cert, key, err := c.keys.cluster.issueKeyPair(user, groups...)
	if err != nil {
		return err
	}
	return c.writeAccess(path, user, &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}
