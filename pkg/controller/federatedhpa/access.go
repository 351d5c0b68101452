// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Access defines how to reach the clusters of ClusterProfiles: by programs that print credentials.
// Whoever operates the hub lists these programs in a file; a profile can only choose among them by
// name.
type Access struct {
	Providers []Provider `json:"providers"`
}

// Provider is one such program. It serves the access provider of the same name in the status of
// profiles.
type Provider struct {
	Name       string                 `json:"name"`
	ExecConfig clientcmdv1.ExecConfig `json:"execConfig"`
	// Args and Env define what happens to the arguments and variables that a profile contains for
	// the program. They are dropped unless the file asks for them, because a user who can write
	// profiles could otherwise control a program on the hub's machine.
	Args ArgsPolicy `json:"profileSourcedCLIArgsPolicy,omitempty"`
	Env  EnvPolicy  `json:"profileSourcedEnvVarsPolicy,omitempty"`
}

// ArgsPolicy is Append or Ignore (the default).
type ArgsPolicy string

// EnvPolicy is AppendIfNotExists, Replace or Ignore (the default).
type EnvPolicy string

// The policies.
const (
	IgnoreArgs ArgsPolicy = "Ignore"
	AppendArgs ArgsPolicy = "Append"
	IgnoreEnv  EnvPolicy  = "Ignore"
	AddEnv     EnvPolicy  = "AppendIfNotExists"
	ReplaceEnv EnvPolicy  = "Replace"
)

// ReadAccess reads the file of providers, JSON or YAML. It returns an error for mistakes that would
// otherwise show only when a cluster is reached.
func ReadAccess(text []byte) (Access, error) {
	var a Access
	if err := yaml.UnmarshalStrict(text, &a); err != nil {
		return Access{}, fmt.Errorf("read providers: %w", err)
	}
	for i, p := range a.Providers {
		if err := p.validate(); err != nil {
			return Access{}, fmt.Errorf("provider %d, %q: %w", i, p.Name, err)
		}
	}
	return a, nil
}

func (p Provider) validate() error {
	switch {
	case p.Name == "":
		return errors.New("it has no name")
	case p.ExecConfig.Command == "" || p.ExecConfig.APIVersion == "":
		return errors.New("execConfig needs command and apiVersion")
	case !slices.Contains([]ArgsPolicy{"", IgnoreArgs, AppendArgs}, p.Args):
		return fmt.Errorf("profileSourcedCLIArgsPolicy is %q", p.Args)
	case !slices.Contains([]EnvPolicy{"", IgnoreEnv, AddEnv, ReplaceEnv}, p.Env):
		return fmt.Errorf("profileSourcedEnvVarsPolicy is %q", p.Env)
	}
	return nil
}

// offer is one way to reach a cluster, as its profile lists it.
type offer struct {
	Name    string              `json:"name"`
	Cluster clientcmdv1.Cluster `json:"cluster"`
}

// profileStatus contains the fields of a profile's status that we read.
type profileStatus struct {
	AccessProviders []offer `json:"accessProviders"`
	// CredentialProviders is the field's former name. If both contain an entry of the same name,
	// AccessProviders counts.
	CredentialProviders []offer `json:"credentialProviders"`
}

// String lists the names of all entries.
func (s profileStatus) String() string {
	var names []string
	for _, o := range slices.Concat(s.AccessProviders, s.CredentialProviders) {
		names = append(names, o.Name)
	}
	return cmp.Or(strings.Join(names, ", "), "there are none")
}

// choose returns the first provider of the file that the profile also lists.
func (a Access) choose(s profileStatus) (Provider, offer, bool) {
	offers := slices.Concat(s.AccessProviders, s.CredentialProviders)
	for _, p := range a.Providers {
		if i := slices.IndexFunc(offers, func(o offer) bool { return o.Name == p.Name }); i >= 0 {
			return p, offers[i], true
		}
	}
	return Provider{}, offer{}, false
}

// Extensions of an entry that contain settings for the program.
const (
	argsExtension = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
	envExtension  = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
)

// kubeconfig returns a kubeconfig that runs the program to reach the cluster.
func (p Provider) kubeconfig(o offer) ([]byte, error) {
	if !strings.HasPrefix(o.Cluster.Server, "https://") {
		return nil, fmt.Errorf("its server is %q: use https, because credentials are not sent otherwise", o.Cluster.Server)
	}
	run := *p.ExecConfig.DeepCopy()
	run.InteractiveMode = clientcmdv1.NeverExecInteractiveMode
	for _, e := range o.Cluster.Extensions {
		if err := p.extend(&run, e); err != nil {
			return nil, fmt.Errorf("read extension %s: %w", e.Name, err)
		}
	}
	const it = "it"
	return json.Marshal(clientcmdv1.Config{
		Kind: "Config", APIVersion: "v1", CurrentContext: it,
		Clusters:  []clientcmdv1.NamedCluster{{Name: it, Cluster: o.Cluster}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: it, AuthInfo: clientcmdv1.AuthInfo{Exec: &run}}},
		Contexts:  []clientcmdv1.NamedContext{{Name: it, Context: clientcmdv1.Context{Cluster: it, AuthInfo: it}}},
	})
}

// extend adds the profile's arguments and variables to the program, if the file allows that.
func (p Provider) extend(run *clientcmdv1.ExecConfig, e clientcmdv1.NamedExtension) error {
	switch {
	case e.Name == argsExtension && p.Args == AppendArgs:
		var more []string
		if err := json.Unmarshal(e.Extension.Raw, &more); err != nil {
			return err
		}
		run.Args = append(run.Args, more...)
	case e.Name == envExtension && (p.Env == AddEnv || p.Env == ReplaceEnv):
		var more map[string]string
		if err := json.Unmarshal(e.Extension.Raw, &more); err != nil {
			return err
		}
		run.Env = p.mergeEnv(run.Env, more)
	}
	return nil
}

// mergeEnv sorts by name, so that the same profile results in the same kubeconfig.
func (p Provider) mergeEnv(own []clientcmdv1.ExecEnvVar, more map[string]string) []clientcmdv1.ExecEnvVar {
	merged := slices.Clone(own)
	for name, value := range more {
		i := slices.IndexFunc(merged, func(v clientcmdv1.ExecEnvVar) bool { return v.Name == name })
		switch {
		case i < 0:
			merged = append(merged, clientcmdv1.ExecEnvVar{Name: name, Value: value})
		case p.Env == ReplaceEnv:
			merged[i].Value = value
		}
	}
	slices.SortFunc(merged, func(a, b clientcmdv1.ExecEnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return merged
}

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
			return fmt.Errorf("%q is unknown: use %s", word, strings.Join(known, ", "))
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
		return nil, errors.New("read kubeconfig: not a kubeconfig")
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
