// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"github.com/gardener/gardener/extensions/pkg/webhook"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

// Names of the webhooks.
const (
	ManagerName    = "manager"
	AutoscalerName = "autoscaler"
	WorkerName     = "worker"
	LeavingName    = "leaving"
)

// timeout is how long a write of gardenlet waits for an answer, in seconds.
const timeout = 5

// namespaceLabel is set by gardenlet while the Shoot has the extension.
const namespaceLabel = v1beta1constants.LabelExtensionPrefix + v1alpha1.ExtensionType

// Switches returns the webhooks for these images.
func Switches(images func() Images) *webhookcmd.SwitchOptions {
	var switches []webhookcmd.NameToFactory
	for _, made := range []factory{managers, autoscalers, workers, leaving} {
		args, object := made()
		switches = append(switches, webhookcmd.Switch(args.Name, func(mgr manager.Manager) (*webhook.Webhook, error) {
			return build(mgr, images(), args, object)
		}))
	}
	return webhookcmd.NewSwitchOptions(switches...)
}

// factory returns which objects a webhook changes.
type factory func() (webhook.Args, client.Object)

func managers() (webhook.Args, client.Object) {
	return webhook.Args{
		Name: ManagerName, NamespaceSelector: labelled(metav1.LabelSelectorOpIn),
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1constants.LabelRole: mutation.DeploymentName}},
	}, &appsv1.Deployment{}
}

func autoscalers() (webhook.Args, client.Object) {
	return webhook.Args{
		Name: AutoscalerName, NamespaceSelector: labelled(metav1.LabelSelectorOpIn),
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1constants.LabelRole: mutation.AutoscalerName}},
	}, &appsv1.Deployment{}
}

func workers() (webhook.Args, client.Object) {
	return webhook.Args{Name: WorkerName, NamespaceSelector: labelled(metav1.LabelSelectorOpIn)}, &extensionsv1alpha1.Worker{}
}

// leaving is for Shoots whose owner has removed the extension: gardenlet removes the label of the
// namespace before it deletes the Extension.
func leaving() (webhook.Args, client.Object) {
	return webhook.Args{
		Name: LeavingName, NamespaceSelector: labelled(metav1.LabelSelectorOpNotIn),
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mutation.ManagedLabel: "true"}},
	}, &appsv1.Deployment{}
}

func labelled(operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: namespaceLabel, Operator: operator, Values: []string{"true"}}}}
}

func build(mgr manager.Manager, images Images, args webhook.Args, object client.Object) (*webhook.Webhook, error) {
	args.Path, args.Target = "/"+args.Name, webhook.TargetSeed
	args.Mutators = map[webhook.Mutator][]webhook.Type{&mutator{reader: mgr.GetClient(), images: images}: {{Obj: object}}}
	w, err := webhook.New(mgr, args)
	if err != nil {
		return nil, err
	}
	w.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	w.TimeoutSeconds = ptr.To(int32(timeout))
	return w, nil
}
