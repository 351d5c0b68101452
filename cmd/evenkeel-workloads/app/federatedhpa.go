// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/connect"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	informers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// federatedRetry is how often the API server is asked for federated autoscalers while it does not
// serve them.
const federatedRetry = 30 * time.Second

// FederatedOptions are the flags of the federated autoscaler's controller.
type FederatedOptions struct {
	// Namespace is the only one to manage; empty means all.
	Namespace string
	// Registry is the source of the clusters, Clusters the namespace that it reads.
	Registry, Clusters string
	// Providers is a file with the programs that print credentials for ClusterProfiles; empty means
	// none.
	Providers string
	// Allowed is what kubeconfigs may contain.
	Allowed []string
	// MaxClusters is how many clusters are watched at most.
	MaxClusters int
	// ProbePeriod and RequestTimeout apply to clusters.
	ProbePeriod, RequestTimeout time.Duration
}

func (o *FederatedOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Namespace, "federation-namespace", "", "Namespace of the FederatedHorizontalPodAutoscalers to manage, in the hub and in clusters. Default: all namespaces.")
	flags.StringVar(&o.Registry, "federation-registry", federatedhpa.SecretRegistry, "Source of the clusters: "+federatedhpa.SecretRegistry+" (Secrets with the label "+federatedhpa.SecretLabel+"=true) or "+federatedhpa.ProfileRegistry+" (multicluster.x-k8s.io).")
	flags.StringVar(&o.Providers, "clusterprofile-provider-file", "", "File (JSON or YAML) with the programs that return credentials, by the names of the access providers of ClusterProfiles. Default: credentials come only from Secrets.")
	flags.StringVar(&o.Clusters, "federation-clusters-namespace", "", "Namespace of the clusters' Secrets or ClusterProfiles. Default: --namespace.")
	flags.IntVar(&o.MaxClusters, "federation-max-clusters", 1000, "Largest number of clusters to watch. Further clusters count as unreachable.")
	flags.StringSliceVar(&o.Allowed, "federation-allow-in-kubeconfigs", nil, "What the kubeconfigs of clusters may contain that weakens or redirects the connection: "+strings.Join([]string{federatedhpa.AllowHTTP, federatedhpa.AllowInsecure, federatedhpa.AllowProxy}, ", ")+". Default: none.")
	flags.DurationVar(&o.ProbePeriod, "federation-probe-period", 10*time.Second, "Time between two probes of a cluster. After two probes without an answer, it counts as unreachable.")
	flags.DurationVar(&o.RequestTimeout, "federation-request-timeout", 10*time.Second, "How long a probe of a cluster waits for an answer.")
}

func (o *FederatedOptions) validate() error {
	switch {
	case o.MaxClusters < 1:
		return fmt.Errorf("--federation-max-clusters: %d is invalid: use 1 or more", o.MaxClusters)
	case !slices.Contains([]string{federatedhpa.SecretRegistry, federatedhpa.ProfileRegistry}, o.Registry):
		return fmt.Errorf("--federation-registry: %q is invalid: use %s or %s", o.Registry, federatedhpa.SecretRegistry, federatedhpa.ProfileRegistry)
	case o.ProbePeriod < 100*time.Millisecond, o.RequestTimeout < 100*time.Millisecond:
		return fmt.Errorf("--federation-probe-period, --federation-request-timeout: use at least 100ms")
	case o.Providers != "" && o.Registry != federatedhpa.ProfileRegistry:
		return fmt.Errorf("--clusterprofile-provider-file needs --federation-registry=%s", federatedhpa.ProfileRegistry)
	}
	if err := federatedhpa.Allowed(o.Allowed).Validate(); err != nil {
		return fmt.Errorf("--federation-allow-in-kubeconfigs: %w", err)
	}
	_, err := o.access()
	return err
}

// access returns the programs for ClusterProfiles.
func (o *FederatedOptions) access() (federatedhpa.Access, error) {
	if o.Providers == "" {
		return federatedhpa.Access{}, nil
	}
	text, err := os.ReadFile(o.Providers)
	if err != nil {
		return federatedhpa.Access{}, fmt.Errorf("--clusterprofile-provider-file: %w", err)
	}
	access, err := federatedhpa.ReadAccess(text)
	if err != nil {
		return federatedhpa.Access{}, fmt.Errorf("--clusterprofile-provider-file: %w", err)
	}
	return access, nil
}

// runFederated partitions federated autoscalers. The cluster is the hub.
func (p *process) runFederated(ctx context.Context) error {
	kind := autoscalingv1alpha1.SchemeGroupVersion.WithResource("federatedhorizontalpodautoscalers")
	if !connect.AwaitKind(ctx, p.ours.Discovery(), kind, federatedRetry, func() {}) {
		return nil
	}
	o := p.options.Federated
	registry, err := p.registryOf(o)
	if err != nil {
		return err
	}
	objects := informers.NewSharedInformerFactoryWithOptions(p.ours, 0, informers.WithNamespace(o.Namespace), informers.WithTweakListOptions(written.ListStored))
	c, err := federatedhpa.New(p.ours.AutoscalingV1alpha1(), objects.Autoscaling().V1alpha1().FederatedHorizontalPodAutoscalers(), registry, p.Recorder,
		federatedhpa.Options{
			Namespace: o.Namespace, MaxClusters: o.MaxClusters, ProbePeriod: o.ProbePeriod, RequestTimeout: o.RequestTimeout, Registerer: p.registry,
			// A process that has lost the lease must not write any more, not even in clusters.
			Connect: func(r federatedhpa.Registration) (*rest.Config, error) {
				return rest.AddUserAgent(p.Gate.Behind(r.Config), federatedName), nil
			},
		})
	if err != nil {
		return err
	}
	objects.StartWithContext(ctx)
	defer objects.Shutdown()
	c.Run(ctx)
	return nil
}

func (p *process) registryOf(o FederatedOptions) (federatedhpa.Registry, error) {
	namespace := cmp.Or(o.Clusters, p.options.Namespace)
	if o.Registry == federatedhpa.SecretRegistry {
		return federatedhpa.NewSecrets(p.core, namespace, o.Allowed), nil
	}
	profiles, err := dynamic.NewForConfig(p.config)
	if err != nil {
		return nil, fmt.Errorf("make client for cluster profiles: %w", err)
	}
	access, err := o.access()
	if err != nil {
		return nil, err
	}
	return federatedhpa.NewProfiles(profiles, p.core, namespace, access, o.Allowed), nil
}
