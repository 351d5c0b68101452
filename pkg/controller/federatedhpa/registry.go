// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// The registries, by the names that flags have for them.
const (
	SecretRegistry  = "secrets"
	ProfileRegistry = "clusterprofiles"
)

// Registry knows the clusters there are.
type Registry interface {
	// Members are all clusters by name.
	Members() []Registration
	// Notify has a function called after every change. It is called before Run.
	Notify(changed func())
	// Run watches until ctx ends, and returns when all that it started has ended.
	Run(ctx context.Context)
	// Filled are done when Members is complete.
	Filled() []cache.DoneChecker
}

// Registration is how one cluster can be reached.
type Registration struct {
	Name   string
	Labels map[string]string
	// Config reaches it; nil with a Fault.
	Config *rest.Config
	// Print changes whenever Config does.
	Print string
	// Fault says why it cannot be reached.
	Fault Hold
}

// kubeconfig makes a configuration of a text that comes from the API. It may not read files of this machine, nor run
// programs unless they are those of the operator: whoever can write it could do so too.
func kubeconfig(text []byte, programs bool) (*rest.Config, error) {
	if len(text) == 0 {
		return nil, errors.New("there is no kubeconfig")
	}
	loaded, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	var outside []string
	for _, user := range loaded.AuthInfos {
		outside = append(outside, reaches(user, programs)...)
	}
	for _, cluster := range loaded.Clusters {
		if cluster.CertificateAuthority != "" {
			outside = append(outside, "certificate-authority")
		}
	}
	if len(outside) > 0 {
		slices.Sort(outside)
		return nil, fmt.Errorf("the kubeconfig must hold everything itself, and has %s", strings.Join(slices.Compact(outside), ", "))
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}

// reaches names what of a user's credentials is outside of the text.
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
