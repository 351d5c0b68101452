// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// tokenLife is longer than any run.
const tokenLife = 24 * 60 * 60

// AccountKubeconfig returns the path of a kubeconfig with a token of a service account, such as a
// pod of that account has. The token is valid for a day.
func (c *Cluster) AccountKubeconfig(ctx context.Context, namespace, account string) (string, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return "", fmt.Errorf("make client: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenLife)}}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make token for %s/%s: %w", namespace, account, err)
	}
	path := c.componentKubeconfig("account-" + namespace + "-" + account)
	return path, c.writeAccess(path, account, &api.AuthInfo{Token: answer.Status.Token})
}

// writeAccess writes a kubeconfig with these credentials.
func (c *Cluster) writeAccess(path, user string, access *api.AuthInfo) error {
	authority, err := os.ReadFile(c.keys.cluster.files.certFile)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	name := "evenkeel-" + c.options.Name
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: c.baseURL(APIServer), CertificateAuthorityData: authority}
	config.AuthInfos[user] = access
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: user, Namespace: "default"}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
