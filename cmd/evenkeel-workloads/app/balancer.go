// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	coreinformers "k8s.io/client-go/informers"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/handlers"
	balancerv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	informers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// balancerRetry is how often the API server is asked for Balancers while it does not serve them. In
// most clusters, it never will.
const balancerRetry = 30 * time.Second

// BalancerOptions are the flags of the Balancer's controller.
type BalancerOptions struct {
	// Namespace is the only one to manage; empty means all.
	Namespace string
	// Kinds may be scaled, as Kind.group.
	Kinds []string
}

func (o *BalancerOptions) addFlags(flags *pflag.FlagSet) {
	for _, kind := range balancer.DefaultKinds {
		o.Kinds = append(o.Kinds, kind.String())
	}
	flags.StringVar(&o.Namespace, "balancer-namespace", "", "Namespace of the Balancers to manage. Default: all namespaces.")
	flags.StringSliceVar(&o.Kinds, "balancer-kinds", o.Kinds, "Kinds that a Balancer may scale, as Kind.group. RBAC must allow them too.")
}

func (o *BalancerOptions) validate() error {
	for _, kind := range o.Kinds {
		if schema.ParseGroupKind(kind).Kind == "" {
			return fmt.Errorf("--balancer-kinds: %q is not a kind: use Kind.group, for example Deployment.apps", kind)
		}
	}
	return nil
}

// runBalancer distributes the replicas of Balancers.
func (p *process) runBalancer(ctx context.Context) error {
	targets, err := dynamic.NewForConfig(p.config)
	if err != nil {
		return fmt.Errorf("make client for targets: %w", err)
	}
	if !connect.AwaitAPI(ctx, p.ours.Discovery(), balancerv1alpha1.SchemeGroupVersion, balancerRetry) {
		return nil
	}
	o := p.options.Balancer
	core := coreinformers.NewSharedInformerFactoryWithOptions(p.core, 0, coreinformers.WithNamespace(o.Namespace), coreinformers.WithTweakListOptions(written.ListStored))
	balancers := informers.NewSharedInformerFactoryWithOptions(p.ours, 0, informers.WithNamespace(o.Namespace), informers.WithTweakListOptions(written.ListStored))
	c, err := balancer.New(
		balancer.Clients{Dynamic: targets, Discovery: p.ours.Discovery(), Balancers: p.ours.BalancerV1alpha1()},
		balancer.Informers{
			Balancers:   balancers.Balancer().V1alpha1().Balancers(),
			Pods:        core.Core().V1().Pods(),
			Autoscalers: core.Autoscaling().V2().HorizontalPodAutoscalers(),
			Nodes:       core.Core().V1().Nodes(),
		},
		p.Recorder, balancer.Options{Namespace: o.Namespace, Kinds: groupKinds(o.Kinds), Cluster: p.cluster, Registerer: p.registry})
	if err != nil {
		return err
	}
	balancers.StartWithContext(ctx)
	defer balancers.Shutdown()
	// Without a Balancer, pods and HorizontalPodAutoscalers need not be read.
	if err := handlers.AwaitFirst(ctx, "Balancer", handlers.Anything, balancers.Balancer().V1alpha1().Balancers().Informer()); err != nil {
		return err
	}
	core.StartWithContext(ctx)
	defer core.Shutdown()
	c.Run(ctx)
	return nil
}

func groupKinds(texts []string) []schema.GroupKind {
	kinds := []schema.GroupKind{}
	for _, text := range texts {
		kinds = append(kinds, schema.ParseGroupKind(text))
	}
	return kinds
}
