// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (r *request) notServed() error {
	return apierrors.NewMethodNotSupported(r.table.gvr.GroupResource(), strings.TrimSuffix(r.Verb+" "+r.Subresource, " "))
}

// subresource carries out a write of anything but the object and its status.
func (s *Server) subresource(r *request) (answer, error) {
	was := r.table.objects[r.objectKey()]
	pod := r.table.Name == "pods" && r.table.Group == "" && r.Verb == "create"
	scale := r.table.Scale != nil && r.Subresource == "scale" && (r.Verb == "update" || r.Verb == "patch")
	switch {
	case !scale && (!pod || r.Subresource != "eviction" && r.Subresource != "binding"):
		return answer{}, r.notServed()
	case was == nil:
		return answer{}, r.notFound()
	case scale:
		return s.rescale(r, was)
	case r.Subresource == "eviction":
		return s.evictPod(r, was)
	default:
		return s.bindPod(r, was)
	}
}

func (s *Server) evictPod(r *request, was *version) (answer, error) {
	eviction := policyv1.Eviction{}
	if err := json.Unmarshal(r.body, &eviction); err != nil {
		return answer{}, apierrors.NewBadRequest("decode Eviction: " + err.Error())
	}
	if eviction.DeleteOptions == nil {
		eviction.DeleteOptions = &metav1.DeleteOptions{}
	}
	if err := s.spendBudget(r, was); err != nil {
		return answer{}, err
	}
	if _, err := s.deleteOne(r, was, eviction.DeleteOptions); err != nil {
		return answer{}, err
	}
	return success()
}

// bindPod sets the node of a pod, once.
func (s *Server) bindPod(r *request, was *version) (answer, error) {
	binding := corev1.Binding{}
	if err := json.Unmarshal(r.body, &binding); err != nil {
		return answer{}, apierrors.NewBadRequest("decode Binding: " + err.Error())
	}
	if node, _, _ := unstructured.NestedString(was.object, "spec", "nodeName"); node != "" {
		return answer{}, r.conflict(fmt.Errorf("pod %s is already assigned to node %q", r.Name, node))
	}
	pod := runtime.DeepCopyJSON(was.object)
	if err := unstructured.SetNestedField(pod, binding.Target.Name, "spec", "nodeName"); err != nil {
		return answer{}, apierrors.NewBadRequest(err.Error())
	}
	conditions, _, _ := unstructured.NestedSlice(pod, "status", "conditions")
	conditions = append(conditions, map[string]any{
		"type": string(corev1.PodScheduled), "status": "True", "lastTransitionTime": s.serverTime().UTC().Format("2006-01-02T15:04:05Z"),
	})
	if err := unstructured.SetNestedSlice(pod, conditions, "status", "conditions"); err != nil {
		return answer{}, apierrors.NewBadRequest(err.Error())
	}
	if _, err := s.commit(r, http.StatusCreated, was, pod); err != nil {
		return answer{}, err
	}
	return success()
}

func success() (answer, error) {
	return object(http.StatusCreated, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}

// scaleOf returns an object as its scale subresource.
func (t *table) scaleOf(v *version) (*autoscalingv1.Scale, error) {
	m, err := objectMeta(v.object)
	if err != nil {
		return nil, err
	}
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: autoscalingv1.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: number(v.object, t.Scale.SpecReplicas)},
		Status: autoscalingv1.ScaleStatus{Replicas: number(v.object, t.Scale.StatusReplicas), Selector: selector(v.object, t.Scale.Selector)},
	}, nil
}

func number(object map[string]any, path string) int32 {
	n, _, _ := unstructured.NestedInt64(object, strings.Split(path, ".")...)
	return int32(n)
}

// selector returns a selector as text: custom resources store it as text, built-in ones structured.
func selector(object map[string]any, path string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
	structured, ok := value.(map[string]any)
	if !ok {
		text, _ := value.(string)
		return text
	}
	s := metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(structured, &s) != nil {
		return ""
	}
	return metav1.FormatLabelSelector(&s)
}

func (s *Server) rescale(r *request, was *version) (answer, error) {
	scale, err := r.table.scaleOf(was)
	if err != nil {
		return answer{}, err
	}
	if scale, err = r.scaled(scale); err != nil {
		return answer{}, err
	}
	if scale.Spec.Replicas < 0 {
		return answer{}, r.invalid(field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0"))
	}
	object := runtime.DeepCopyJSON(was.object)
	if scale.ResourceVersion != "" {
		metadataOf(object)["resourceVersion"] = scale.ResourceVersion
	}
	if err := unstructured.SetNestedField(object, int64(scale.Spec.Replicas), strings.Split(r.table.Scale.SpecReplicas, ".")...); err != nil {
		return answer{}, apierrors.NewBadRequest(err.Error())
	}
	if _, err := s.replace(r, was, object); err != nil {
		return answer{}, err
	}
	return s.readObject(r)
}

// scaled returns the Scale that the request asks for.
func (r *request) scaled(is *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	body := r.body
	if r.Verb == "patch" {
		raw, err := json.Marshal(is)
		if err != nil {
			return nil, err
		}
		shown := map[string]any{}
		if err := json.Unmarshal(raw, &shown); err != nil {
			return nil, err
		}
		patched, err := r.patched(&version{object: shown})
		if err != nil {
			return nil, err
		}
		if body, err = json.Marshal(patched); err != nil {
			return nil, err
		}
	}
	wish := &autoscalingv1.Scale{}
	if err := json.Unmarshal(body, wish); err != nil {
		return nil, apierrors.NewBadRequest("decode Scale: " + err.Error())
	}
	return wish, nil
}
