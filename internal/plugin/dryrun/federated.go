// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	federatedhpaplan "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

// AddFederated adds plans of federated autoscalers to a prediction. Their end is their goal: the
// bounds of the clusters when all moves are complete, if the load stays the same.
func (f *Forecast) AddFederated(previews []federatedhpa.Preview) {
	for _, p := range previews {
		f.Plans = append(f.Plans, explainFederated(p))
		e := ClusterEnd{Namespace: p.View.Object.Namespace, Name: p.View.Object.Name, Was: map[string]string{}, Is: map[string]string{}}
		for _, s := range p.Plan.Clusters {
			e.Was[s.Name], e.Is[s.Name] = boundsText(s.Confirmed), boundsText(s.Aim)
		}
		f.End.Federated = append(f.End.Federated, e)
	}
}

func explainFederated(f federatedhpa.Preview) Plan {
	o := f.View.Object
	p := Plan{Kind: "FederatedHorizontalPodAutoscaler", Namespace: o.Namespace, Name: o.Name, State: AtRest}
	for _, order := range f.Plan.Orders {
		p.Steps = append(p.Steps, Step{Do: Bound, On: order.Cluster, From: boundsText(order.Was), To: boundsText(order.Bounds), Why: string(order.Operation)})
	}
	var away []string
	for _, c := range f.View.Clusters {
		if c.Registered && !c.Reachable {
			away = append(away, c.Name)
		}
	}
	moving := slices.ContainsFunc(f.Plan.Clusters, func(s federatedhpaplan.ClusterPlan) bool { return s.Aim != s.Confirmed })
	switch {
	case f.Plan.Stop.Message != "":
		p.State, p.Why = Blocked, f.Plan.Stop.Message
	case o.Spec.Paused:
		p.State, p.Why = Blocked, "spec.paused is set"
	case len(p.Steps) > 0:
		p.State = Moving
	case moving:
		p.State, p.Why = Moving, "bounds are lowered in one cluster before they are raised in another"
	case f.Plan.Missing > 0:
		p.State, p.Why = Blocked, fmt.Sprintf("clusters request %d more replicas than their limits and maxReplicas allow", f.Plan.Missing)
	}
	if len(away) > 0 && p.Why == "" {
		p.Why = "unreachable: " + strings.Join(away, ", ")
	}
	return p
}

// boundsText returns "none" if there is no autoscaler.
func boundsText(b federatedhpaplan.Bounds) string {
	if b.Max == 0 {
		return "none"
	}
	return fmt.Sprintf("%d-%d", b.Min, b.Max)
}

// answerTime is how long clusters may take to answer. Clusters that have not answered by then are
// unreachable.
const answerTime = 10 * time.Second

// Fleet describes where the hub finds the clusters of federated autoscalers.
type Fleet struct {
	// Namespace in the control cluster.
	Namespace string
	// Profiles reports whether clusters are ClusterProfiles, and not Secrets.
	Profiles bool
	// Access contains the programs that print credentials for ClusterProfiles. No other program is
	// run, whatever a profile contains.
	Access federatedhpa.Access
	// Allowed is what kubeconfigs may contain.
	Allowed federatedhpa.Allowed
}

// Federate plans for all federated autoscalers, using what their clusters report. It also returns,
// one per line, what was left out.
func (c Clients) Federate(ctx context.Context, control *rest.Config, fleet Fleet, objects []*autoscaling.FederatedHorizontalPodAutoscaler) ([]federatedhpa.Preview, []string, error) {
	if len(objects) == 0 {
		return nil, nil, nil
	}
	// The controllers' logs are meant for their operators.
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, klog.Logger{}), answerTime)
	defer cancel()
	registry, err := c.registry(ctx, control, fleet)
	if err != nil {
		return nil, nil, err
	}
	previews, err := federatedhpa.NewPreviews(ctx, registry, objects, federatedhpa.Options{
		Connect: func(r federatedhpa.Registration) (*rest.Config, error) { return readOnly(r.Config), nil },
	})
	return previews, c.passedOver(ctx, fleet), err
}

// registry returns the registry of the fleet. A user who may not read it gets an error at once,
// instead of waiting in vain.
func (c Clients) registry(ctx context.Context, control *rest.Config, fleet Fleet) (federatedhpa.Registry, error) {
	core, err := connect.Core(readOnly(control))
	if err != nil {
		return nil, fmt.Errorf("connect to the control cluster: %w", err)
	}
	label := federatedhpa.SecretLabel + "=true"
	if fleet.Profiles {
		label = federatedhpa.ProfileLabel
		if _, err := c.profiles(ctx, fleet.Namespace); err != nil {
			return nil, fmt.Errorf("list the ClusterProfiles in namespace %s: %w", fleet.Namespace, err)
		}
	}
	if _, err := core.CoreV1().Secrets(fleet.Namespace).List(ctx, metav1.ListOptions{LabelSelector: label, Limit: 1}); err != nil {
		return nil, fmt.Errorf("list the clusters' Secrets in namespace %s: %w", fleet.Namespace, err)
	}
	if fleet.Profiles {
		return federatedhpa.NewProfiles(c.Control, core, fleet.Namespace, fleet.Access, fleet.Allowed), nil
	}
	return federatedhpa.NewSecrets(core, fleet.Namespace, fleet.Allowed), nil
}

// profiles returns the names of all ClusterProfiles of a namespace.
func (c Clients) profiles(ctx context.Context, namespace string) ([]string, error) {
	list, err := c.Control.Resource(federatedhpa.ProfileResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names, nil
}

// passedOver names the ClusterProfiles that a fleet of Secrets leaves out; none if they cannot be
// read.
func (c Clients) passedOver(ctx context.Context, fleet Fleet) []string {
	if fleet.Profiles {
		return nil
	}
	names, err := c.profiles(ctx, fleet.Namespace)
	if err != nil || len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("plan uses the clusters of Secrets and omits the ClusterProfiles %s of namespace %s. If the hub runs with --federation-registry=%s, use that flag here too",
		strings.Join(names, ", "), fleet.Namespace, federatedhpa.ProfileRegistry)}
}
