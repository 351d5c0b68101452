// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

// shoot contains the objects on which a step is decided. Deployments that do not exist have no
// name.
type shoot struct {
	wanted, offered     bool
	manager, autoscaler *appsv1.Deployment
}

func (s *shoot) view() View {
	return View{
		Wanted: s.wanted, Offered: s.offered, Served: mutation.IsServing(s.manager), Runs: mutation.IsRolledOut(s.manager),
		Exists: s.autoscaler.Name != "", Upstream: mutation.IsUpstream(s.autoscaler),
	}
}

func (r *reconciler) observe(ctx context.Context, namespace string) (*shoot, error) {
	s := &shoot{manager: &appsv1.Deployment{}, autoscaler: &appsv1.Deployment{}}
	for name, d := range map[string]*appsv1.Deployment{mutation.DeploymentName: s.manager, mutation.AutoscalerName: s.autoscaler} {
		if err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get deployment %s: %w", name, err)
		}
	}
	ex := &extensionsv1alpha1.Extension{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.ExtensionType}, ex); err != nil {
		return s, client.IgnoreNotFound(err)
	}
	state, err := accepted.Read(ex)
	if err != nil {
		return nil, err
	}
	if s.wanted = state.WantsUpstream(ex); s.wanted {
		s.offered, err = nodegroups.Offered(ctx, r.client, namespace)
	}
	return s, err
}
