// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// placeOne carries out the write of a workload from the outbox. If it fails, the next plan asks for
// it again; the workload's own events trigger that plan.
func (m *member) placeOne(ctx context.Context, key string) {
	placing := m.outbox.readEntry(key).placing
	if placing == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.RequestTimeout)
	defer cancel()
	begun := m.o.Clock.Now()
	created, err := m.writeWorkload(ctx, *placing, key)
	m.o.metrics.countWrite(m.registration.Name, "workload", err, m.o.Clock.Since(begun))
	now := m.o.Clock.Now()
	m.outbox.updateEntry(key, func(n *outboxEntry) {
		if at := now.Add(arrival(err)); placing.Operation == plan.Create && at.After(n.arrives) {
			n.arrives = at
		}
		n.created = cmp.Or(created, n.created)
		n.placing, n.placed, n.retry = nil, plan.Hold{}, now.Add(settle)
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "A workload could not be placed", "object", key)
			n.placed, n.retry = plan.Hold{Reason: "WorkloadRefused", Message: err.Error()}, now.Add(firstRefusal)
		}
	})
	m.changed(key)
}

// settle is how long to wait until the cache shows a workload that was written.
const settle = 2 * time.Second

// arrival returns for how long a creation with this answer may still show in the cache.
func arrival(err error) time.Duration {
	switch written.Outcome(err) {
	case written.Unknown:
		return plan.CreationLife
	case written.Refused:
		return 0
	default:
		return settle
	}
}

// writeWorkload creates a workload with one replica, and returns its version. Later writes leave replicas
// out, because they belong to the autoscaler; those of a workload without one are scaled.
func (m *member) writeWorkload(ctx context.Context, p placement, key string) (created string, err error) {
	namespace, _, _ := cache.SplitMetaNamespaceKey(key)
	client := m.dynamic.Resource(p.kind.resource).Namespace(namespace)
	switch p.Operation {
	case plan.Create:
		wanted := p.wanted.DeepCopy()
		if err := unstructured.SetNestedField(wanted.Object, int64(1), "spec", "replicas"); err != nil {
			return "", err
		}
		made, err := client.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
		if err != nil {
			return "", err
		}
		_, _ = claimFields(ctx, client, made) // otherwise, before the first change
		return made.GetResourceVersion(), nil
	case plan.Change:
		is, err := client.Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if string(is.GetUID()) != p.UID {
			return "", apierrors.NewConflict(p.kind.resource.GroupResource(), p.name, errUnclaimed)
		}
		if is, err = claimFields(ctx, client, is); err != nil {
			return "", err
		}
		wanted := p.wanted.DeepCopy()
		wanted.SetUID(is.GetUID())
		wanted.SetResourceVersion(is.GetResourceVersion())
		_, err = client.Apply(ctx, p.name, wanted, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return "", err
	case plan.Scale:
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": p.Version}, "spec": map[string]any{"replicas": p.Replicas}})
		if err != nil {
			return "", err
		}
		_, err = client.Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: leaveManager})
		return "", err
	default:
		return "", client.Delete(ctx, p.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID(p.UID))}, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	}
}

const (
	// fieldManager owns the fields that we write in clusters.
	fieldManager = "evenkeel-federatedhpa"
	// leaveManager owns the replicas of a workload that this controller has scaled, until anyone else
	// scales it.
	leaveManager = "evenkeel-federatedhpa-leave"
	// ownerLabel contains the UID of the object that an object in a cluster belongs to.
	ownerLabel = v1alpha1.GroupName + "/federated-by"
	// templateAnnotation identifies what an object in a cluster was created from, epochAnnotation
	// the order that created it.
	templateAnnotation = v1alpha1.GroupName + "/template"
	epochAnnotation    = v1alpha1.GroupName + "/epoch"
)

// blueprint contains what the autoscalers of one object have in common.
type blueprint struct {
	spec map[string]any
	hash string
	// typed is the same spec, decoded for comparison; nil if it cannot be decoded.
	typed *autoscalingv2.HorizontalPodAutoscalerSpec
}

// bareBlueprint returns a blueprint without metrics and behavior. It suffices to remove autoscalers
// while an object's metrics or behavior cannot be read.
func bareBlueprint(o *v1alpha1.FederatedHorizontalPodAutoscaler) blueprint {
	return blueprint{spec: map[string]any{"scaleTargetRef": map[string]any{
		"apiVersion": o.Spec.ScaleTargetRef.APIVersion, "kind": o.Spec.ScaleTargetRef.Kind, "name": o.Spec.ScaleTargetRef.Name,
	}}}
}

// blueprintOf returns an error for invalid metrics or an invalid behavior.
func blueprintOf(o *v1alpha1.FederatedHorizontalPodAutoscaler) (blueprint, error) {
	spec := bareBlueprint(o).spec
	var metrics []any
	for i, raw := range o.Spec.Metrics {
		metric, err := object(raw)
		if err != nil {
			return blueprint{}, fmt.Errorf("spec.metrics[%d]: %w", i, err)
		}
		metrics = append(metrics, metric)
	}
	if metrics != nil {
		spec["metrics"] = metrics
	}
	if o.Spec.Behavior != nil {
		behavior, err := object(*o.Spec.Behavior)
		if err != nil {
			return blueprint{}, fmt.Errorf("spec.behavior: %w", err)
		}
		spec["behavior"] = behavior
	}
	b := blueprint{spec: spec, hash: hashOf(spec), typed: &autoscalingv2.HorizontalPodAutoscalerSpec{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, b.typed); err != nil {
		return blueprint{}, err
	}
	for i, m := range b.typed.Metrics {
		if m.Type == "" {
			return blueprint{}, fmt.Errorf("spec.metrics[%d]: type is missing", i)
		}
	}
	return b, nil
}

func object(raw runtime.RawExtension) (map[string]any, error) {
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	u := map[string]any{}
	err = utiljson.Unmarshal(text, &u) // as the API machinery does, which keeps large integers
	return u, err
}

func hashOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// drifted reports whether a cluster's autoscaler differs from the blueprint. Fields that the
// blueprint leaves out belong to the cluster.
func (b blueprint) drifted(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
	wanted := b.typed
	return hpa.Annotations[templateAnnotation] != b.hash || hpa.Spec.ScaleTargetRef != wanted.ScaleTargetRef ||
		wanted.Metrics != nil && (len(wanted.Metrics) != len(hpa.Spec.Metrics) || !equality.Semantic.DeepDerivative(wanted.Metrics, hpa.Spec.Metrics)) ||
		wanted.Behavior != nil && (!equality.Semantic.DeepDerivative(wanted.Behavior, hpa.Spec.Behavior) ||
			hasMorePolicies(hpa.Spec.Behavior.ScaleUp, wanted.Behavior.ScaleUp) || hasMorePolicies(hpa.Spec.Behavior.ScaleDown, wanted.Behavior.ScaleDown))
}

// hasMorePolicies reports whether a cluster has policies beyond those that a blueprint lists.
func hasMorePolicies(is, wanted *autoscalingv2.HPAScalingRules) bool {
	return is != nil && wanted != nil && len(wanted.Policies) > 0 && len(is.Policies) > len(wanted.Policies)
}

// isTaken reports whether an autoscaler is what the cluster has made of the blueprint. An API server
// drops fields that are disabled there, and would drop them again.
func (b blueprint) isTaken(u *unstructured.Unstructured, made string) bool {
	return u.GetAnnotations()[templateAnnotation] == b.hash && madeOf(u) == made
}

// madeOf identifies what a cluster has stored for a blueprint, whatever the bounds are.
func madeOf(u *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	delete(spec, "minReplicas")
	delete(spec, "maxReplicas")
	return hashOf([]any{u.GetAnnotations()[templateAnnotation], spec})
}

// autoscaler returns the autoscaler that an order writes.
func (b blueprint) autoscaler(o *v1alpha1.FederatedHorizontalPodAutoscaler, order plan.Order) *unstructured.Unstructured {
	spec := runtime.DeepCopyJSON(b.spec)
	spec["minReplicas"], spec["maxReplicas"] = order.Min, order.Max
	metadata := map[string]any{
		"name": o.Name, "namespace": o.Namespace, "labels": map[string]any{ownerLabel: string(o.UID)},
		"annotations": map[string]any{templateAnnotation: b.hash, epochAnnotation: strconv.FormatInt(order.Epoch, 10)},
	}
	if order.Operation == plan.Change {
		metadata["resourceVersion"], metadata["uid"] = order.Version, order.UID
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec,
	}}
}

// workloadOf returns the template of the workload without replicas, and its identity; nil if there is
// no template.
func workloadOf(o *v1alpha1.FederatedHorizontalPodAutoscaler) (*unstructured.Unstructured, string, error) {
	if o.Spec.Placement == nil || o.Spec.Placement.Template == nil {
		return nil, "", nil
	}
	content, err := object(*o.Spec.Placement.Template)
	if err != nil {
		return nil, "", fmt.Errorf("spec.placement.template: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetName() != o.Spec.ScaleTargetRef.Name {
		return nil, "", fmt.Errorf("spec.placement.template: use the name in scaleTargetRef")
	}
	unstructured.RemoveNestedField(content, "spec", "replicas")
	unstructured.RemoveNestedField(content, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	hash := hashOf(content)
	u.SetNamespace(o.Namespace)
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	u.SetLabels(withLabel(labels, ownerLabel, string(o.UID)))
	u.SetAnnotations(withLabel(annotations, templateAnnotation, hash))
	return u, hash, nil
}

func withLabel(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}
