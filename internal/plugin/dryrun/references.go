// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	strictjson "sigs.k8s.io/json"

	"github.com/evenkeel/evenkeel/internal/connect"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	capacitybufferplan "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
)

// isForBuffers reports whether CapacityBuffers need a Reserve.
func isForBuffers(r *autoscaling.Reserve) bool { return r.Labels[capacitybufferplan.OwnLabel] != "" }

// ReadReferences reads what the CapacityBuffers of Evenkeel refer to, and nothing if there are
// none.
func (c Clients) ReadReferences(ctx context.Context, o Objects) (Objects, error) {
	buffers := o.ourBuffers()
	if len(buffers) == 0 || c.Target == nil {
		return o, nil
	}
	r, found := &reading{ctx: ctx}, map[string]*[]*unstructured.Unstructured{}
	r.needed(true)
	for _, b := range buffers {
		for _, kind := range capacitybuffer.ReferenceKinds(b) {
			if found[kind] == nil {
				found[kind] = &[]*unstructured.Unstructured{}
				listInto(r, c.Target, capacitybuffer.ReferenceResource(kind), "", found[kind])
			}
		}
	}
	r.wait()
	slices.Sort(r.lines)
	o.Missing = slices.Concat(o.Missing, r.lines)
	var err error
	if o.References, err = referencesOf(found, r.unread); err != nil {
		return Objects{}, err
	}
	if slices.ContainsFunc(buffers, capacitybuffer.ReadsScale) {
		o.References.Scales, err = c.scales()
	}
	return o, err
}

func (o Objects) ourBuffers() []*v1beta1.CapacityBuffer {
	return slices.DeleteFunc(slices.Clone(o.Buffers), func(b *v1beta1.CapacityBuffer) bool { return !b.Reserved() })
}

// applyReferences applies the changes of what CapacityBuffers refer to.
func (o Objects) applyReferences() (Objects, error) {
	o.References.Objects = maps.Clone(o.References.Objects)
	if o.References.Objects == nil {
		o.References.Objects = map[string][]any{}
	}
	for _, c := range o.Referenced {
		kind := c.Kind.Kind
		needed := slices.ContainsFunc(o.ourBuffers(), func(b *v1beta1.CapacityBuffer) bool {
			return slices.Contains(capacitybuffer.ReferenceKinds(b), kind)
		})
		if !needed {
			return o, fmt.Errorf("change %s: no CapacityBuffer of Evenkeel refers to a %s, and nothing else here depends on it", c, kind)
		}
		if why := o.References.Unread[kind]; why != "" {
			return o, fmt.Errorf("change %s: %s", c, why)
		}
		var err error
		if o.References.Objects[kind], err = changeReference(o.References.Objects[kind], c); err != nil {
			return o, fmt.Errorf("change %s: %w", c, err)
		}
	}
	return o, nil
}

// changeReference applies a change to objects of its kind.
func changeReference(objects []any, c Change) ([]any, error) {
	at := slices.IndexFunc(objects, func(o any) bool { return c.names(o.(metav1.Object)) })
	raw := c.raw
	if at >= 0 {
		var err error
		if _, raw, err = c.merge(objects[at]); err != nil {
			return nil, err
		}
	}
	after, err := scheme.Scheme.New(c.Kind)
	if err != nil {
		return nil, err
	}
	strict, err := strictjson.UnmarshalStrict(raw, after)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	if objects = slices.Clone(objects); at >= 0 {
		objects[at] = after
		return objects, nil
	}
	return append(objects, after), nil
}

// referencesOf returns objects by kind. Quotas that cannot be read limit nothing; a note reports
// that.
func referencesOf(found map[string]*[]*unstructured.Unstructured, unread map[string]string) (capacitybuffer.References, error) {
	all := capacitybuffer.References{Objects: map[string][]any{}, Unread: map[string]string{}}
	for kind, list := range found {
		resource := capacitybuffer.ReferenceResource(kind)
		if why := unread[resource.Resource]; why != "" && kind != capacitybuffer.KindQuota {
			all.Unread[kind] = fmt.Sprintf("the %s of the target cluster could not be read: %s", resource.Resource, why)
		}
		for _, u := range *list {
			object, err := scheme.Scheme.New(resource.GroupVersion().WithKind(kind))
			if err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object)
			}
			if err != nil {
				return all, fmt.Errorf("read %s %s/%s: %w", kind, u.GetNamespace(), u.GetName(), err)
			}
			all.Objects[kind] = append(all.Objects[kind], object)
		}
	}
	return all, nil
}

// scales returns a reader of the scale subresources of the target cluster.
func (c Clients) scales() (*capacitybuffer.ScaleReader, error) {
	core, err := connect.Core(c.target)
	if err != nil {
		return nil, fmt.Errorf("connect to the target cluster: %w", err)
	}
	return capacitybuffer.NewScaleReader(c.target, core)
}
