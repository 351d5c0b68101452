// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// kinds are the resources that answers depend on, in the order in which they are created.
var kinds = []string{"machineclasses", "machinedeployments", "machinesets", "machines", "nodes"}

// Objects are objects as JSON, by resource and name, as in "machines/a".
type Objects map[string]json.RawMessage

// Apply takes over a step with an object.
func (o Objects) Apply(s Step) error {
	if s.Is == nil {
		delete(o, s.Object)
		return nil
	}
	was := o[s.Object]
	if was == nil {
		was = json.RawMessage("{}")
	}
	is, err := jsonpatch.MergePatch(was, s.Is)
	if err != nil {
		return fmt.Errorf("apply %s: %w", s.Object, err)
	}
	o[s.Object] = is
	return nil
}

// update takes over what stores contain, and returns what changed, as steps at a time.
func (o Objects) update(stores map[string]cache.Store, begun, now time.Time) ([]Step, error) {
	var steps []Step
	there, first := map[string]bool{}, len(o) == 0
	for resource, store := range stores {
		for _, item := range store.List() {
			step, err := o.change(resource, item)
			if err != nil {
				return nil, err
			}
			if step.At = seconds(begun, now); first {
				step.At = min(step.At, seconds(begun, created(item)))
			}
			there[step.Object] = true
			if string(step.Is) != "{}" {
				steps = append(steps, step)
			}
		}
	}
	for name := range o {
		if !there[name] {
			steps = append(steps, Step{At: seconds(begun, now), Object: name})
		}
	}
	slices.SortFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(rank(a.Object), rank(b.Object)), cmp.Compare(a.Object, b.Object))
	})
	for _, step := range steps {
		if err := o.Apply(step); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// change returns what is different about an object.
func (o Objects) change(resource string, item any) (Step, error) {
	object, err := meta.Accessor(item)
	if err != nil {
		return Step{}, err
	}
	is, err := pruned(item)
	if err != nil {
		return Step{}, err
	}
	step := Step{Object: resource + "/" + object.GetName()}
	was, known := o[step.Object]
	if !known {
		was = json.RawMessage("{}")
	}
	step.Is, err = jsonpatch.CreateMergePatch(was, is)
	return step, err
}

func created(item any) time.Time {
	object, err := meta.Accessor(item)
	if err != nil {
		return time.Time{}
	}
	return object.GetCreationTimestamp().Time
}

func rank(object string) int {
	resource, _, _ := strings.Cut(object, "/")
	return slices.Index(kinds, resource)
}

// seconds returns how many seconds lie between two times, to the millisecond.
func seconds(from, to time.Time) float64 { return float64(to.Sub(from).Milliseconds()) / 1000 }

// pruned returns an object as JSON, without what no answer depends on.
func pruned(item any) ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
	if err != nil {
		return nil, err
	}
	if _, is := item.(*corev1.Node); !is {
		unstructured.RemoveNestedField(content, "status", "conditions")
	}
	prune(content)
	return json.Marshal(content)
}

// neutral are fields that no answer depends on, or that the API server sets when an object is
// written again. Comments are those of a condition.
var (
	neutral = []string{"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "deletionGracePeriodSeconds",
		"lastHeartbeatTime", "nodeInfo", "daemonEndpoints"}
	comments = []string{"message", "reason", "lastUpdateTime"}
)

func prune(value any) {
	switch value := value.(type) {
	case map[string]any:
		_, condition := value["lastTransitionTime"]
		maps.DeleteFunc(value, func(field string, inner any) bool {
			return inner == nil || slices.Contains(neutral, field) || condition && slices.Contains(comments, field)
		})
		for _, inner := range value {
			prune(inner)
		}
	case []any:
		for _, inner := range value {
			prune(inner)
		}
	}
}

// node returns a Node as calls speak of it, nil if it is unknown.
func (o Objects) node(name string) *pb.ExternalGrpcNode {
	var node corev1.Node
	if is := o["nodes/"+name]; is == nil || json.Unmarshal(is, &node) != nil {
		return nil
	}
	return &pb.ExternalGrpcNode{Name: name, ProviderID: node.Spec.ProviderID, Labels: node.Labels, Annotations: node.Annotations}
}
