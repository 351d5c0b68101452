// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// maxKubeconfig bounds the text of a kubeconfig.
const maxKubeconfig = 256 << 10

// Allowed lists what a kubeconfig may contain beyond a verified connection to its server.
type Allowed []string

// The entries of Allowed, named as in a kubeconfig.
const (
	AllowHTTP     = "http"
	AllowInsecure = "insecure-skip-tls-verify"
	AllowProxy    = "proxy-url"
)

// Validate returns an error for unknown entries.
func (a Allowed) Validate() error {
	for _, word := range a {
		if known := []string{AllowHTTP, AllowInsecure, AllowProxy}; !slices.Contains(known, word) {
			return fmt.Errorf("%q is none of %s", word, strings.Join(known, ", "))
		}
	}
	return nil
}

// kubeconfig parses a kubeconfig that comes from the API. It must not refer to files, nor run
// programs other than the operator's: otherwise, everyone who can write it could run programs in
// the hub. Errors do not repeat the text.
func kubeconfig(text []byte, programs bool, allowed Allowed) (*rest.Config, error) {
	switch {
	case len(text) == 0:
		return nil, errors.New("there is no kubeconfig")
	case len(text) > maxKubeconfig:
		return nil, fmt.Errorf("the kubeconfig is longer than %d KiB", maxKubeconfig>>10)
	}
	loaded, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("read kubeconfig: it is none")
	}
	var outside, unsafe []string
	for _, user := range loaded.AuthInfos {
		outside = append(outside, reaches(user, programs)...)
	}
	for _, cluster := range loaded.Clusters {
		if cluster.CertificateAuthority != "" {
			outside = append(outside, "certificate-authority")
		}
		unsafe = append(unsafe, allowed.refuse(cluster)...)
	}
	if len(outside) > 0 {
		return nil, fmt.Errorf("the kubeconfig must be self-contained, but has %s", joinWords(outside))
	}
	if len(unsafe) > 0 {
		return nil, fmt.Errorf("the kubeconfig has %s, which --federation-allow-in-kubeconfigs does not allow", joinWords(unsafe))
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errors.New("read kubeconfig: its current context does not name a cluster and a user")
	}
	return config, nil
}

func joinWords(all []string) string {
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// reaches returns what the credentials refer to outside of the kubeconfig.
func reaches(user *api.AuthInfo, programs bool) []string {
	var all []string
	for name, is := range map[string]bool{
		"exec": user.Exec != nil && !programs, "auth-provider": user.AuthProvider != nil, "tokenFile": user.TokenFile != "",
		"client-certificate": user.ClientCertificate != "", "client-key": user.ClientKey != "",
	} {
		if is {
			all = append(all, name)
		}
	}
	return all
}

// refuse returns what the connection to the server contains that is not allowed.
func (a Allowed) refuse(cluster *api.Cluster) []string {
	var all []string
	server, err := url.Parse(cluster.Server)
	for name, is := range map[string]bool{
		AllowHTTP: err != nil || server.Scheme != "https", AllowInsecure: cluster.InsecureSkipTLSVerify, AllowProxy: cluster.ProxyURL != "",
	} {
		if is && !slices.Contains(a, name) {
			all = append(all, name)
		}
	}
	return all
}
