// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// client returns the user's client of a kind.
func (s *stage) client(kind string) dynamic.ResourceInterface {
	if kind == Node {
		return s.user.Resource(nodes)
	}
	return s.user.Resource(resourceOf(kind)).Namespace(fixture.Namespace)
}

func (a Create) play(s *stage) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.Object)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: content}
	_, err = s.client(o.GetKind()).Create(context.Background(), o, metav1.CreateOptions{})
	return err
}

func (a Patch) play(s *stage) error { return s.merge(a.Kind, a.Name, a.Merge, a.Subresource) }

func (a Delete) play(s *stage) error {
	o := metav1.DeleteOptions{}
	if a.Policy != "" {
		o.PropagationPolicy = &a.Policy
	}
	return tolerate(s.client(a.Kind).Delete(context.Background(), a.Name, o))
}

func (a PatchMachine) play(s *stage) error {
	return s.at(a.At, func(name string) error { return s.merge(Machine, name, a.Merge, a.Subresource) })
}

func (a PatchNode) play(s *stage) error {
	return s.at(a.At, func(name string) error { return s.merge(Node, name, a.Merge, "") })
}

func (a PatchSet) play(s *stage) error {
	return s.atSet(a.Of, func(set string) error { return s.merge(Set, set, a.Merge, "") })
}

func (a DeleteSet) play(s *stage) error {
	return s.atSet(a.Of, func(set string) error { return Delete{Kind: Set, Name: set}.play(s) })
}

func (a DeleteMachine) play(s *stage) error {
	return s.at(a.At, func(name string) error { return Delete{Kind: Machine, Name: name}.play(s) })
}

func (a DeleteNode) play(s *stage) error {
	return s.at(a.At, func(name string) error { return Delete{Kind: Node, Name: name}.play(s) })
}

func (a Sicken) play(s *stage) error {
	return s.at(a.At, func(name string) error {
		s.cloud.Waker.Set(func() { s.cloud.sick[name] = true })
		return nil
	})
}

func (a Recover) play(s *stage) error {
	return s.at(a.At, func(name string) error {
		s.cloud.Waker.Set(func() { delete(s.cloud.sick, name) })
		if m := s.w.Get(machines, fixture.Namespace, name); phaseOf(m.Object) != mcmapi.MachineFailed {
			return nil
		}
		return s.merge(Machine, name, `{"status":{"currentStatus":{"phase":"Running"},"lastOperation":{"state":"Successful"}}}`, "status")
	})
}

func (a Boots) play(s *stage) error {
	s.cloud.Waker.Set(func() { s.cloud.blocked = a.Blocked })
	return nil
}

func (a Quota) play(s *stage) error {
	s.cloud.Waker.Set(func() { s.cloud.exhausted = a.Exhausted })
	return nil
}

func (a Drains) play(s *stage) error {
	s.cloud.Waker.Set(func() {
		if s.cloud.Drain = drainTime; a.Blocked {
			s.cloud.Drain = endless
		}
	})
	return nil
}

func (a Refuse) play(s *stage) error {
	s.refused.Store(resourceOf(a.Kind).Resource, a.Refused)
	return nil
}

func (a Glance) play(s *stage) error {
	err := a.Act.play(s)
	time.Sleep(a.After)
	return err
}

func (a Updates) play(s *stage) error {
	s.cloud.Waker.Set(func() { s.cloud.updates.Fail = a.Fail })
	return nil
}

// Annotations of MCM for machines that are named.
const (
	triggerDeletion = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
	lastChange      = "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"
)

func (a Name) play(s *stage) error {
	now := time.Now().UTC().Format(time.RFC3339)
	var names []string
	for _, n := range a.Nth {
		err := s.at(At{cmp.Or(a.From, a.Of), n}, func(name string) error {
			if controllerOf(s.w.Get(machines, fixture.Namespace, name)) == "" {
				return nil // cluster-autoscaler names what a MachineDeployment has
			}
			if !a.Old {
				name += "~" + now
			}
			names = append(names, name)
			return nil
		})
		if err != nil {
			return err
		}
	}
	annotations := map[string]any{triggerDeletion: strings.Join(names, ",")}
	if !a.Unstamped {
		annotations[lastChange] = now
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"replicas": a.Replicas}})
	if err != nil {
		return err
	}
	return s.merge(Deployment, a.Of, string(text), "")
}

func (a Wait) play(*stage) error {
	time.Sleep(a.Time)
	return nil
}

func (a Crash) play(s *stage) error {
	s.process.CrashFor(a.Pause)
	time.Sleep(a.Pause + time.Second)
	return nil
}

func (a Down) play(s *stage) error {
	s.process.Crash()
	err := Together{Pause: time.Second, Acts: a.Acts}.play(s)
	s.process.Restart()
	return err
}

func (a Together) play(s *stage) error {
	for _, act := range a.Acts {
		if err := act.play(s); err != nil {
			return fmt.Errorf("%s: %w", act, err)
		}
		time.Sleep(a.Pause)
	}
	return nil
}

// at calls back with the name of a machine, if there is one.
func (s *stage) at(a At, do func(name string) error) error {
	if a == theSame {
		return do(s.last)
	}
	all := s.number().of(a.Of)
	if len(all) == 0 {
		return nil
	}
	n := a.Nth % len(all)
	if n < 0 {
		n += len(all)
	}
	s.last = all[n]
	return do(s.last)
}

// atSet calls back with the MachineSet of a machine, if there is one.
func (s *stage) atSet(a At, do func(set string) error) error {
	return s.at(a, func(name string) error {
		if set := controllerOf(s.w.Get(machines, fixture.Namespace, name)); set != "" {
			return do(set)
		}
		return nil
	})
}

var later = regexp.MustCompile(`<now(\+[0-9hms]+)?>`)

// merge patches an object. An object that is gone is no error.
func (s *stage) merge(kind, name, text, subresource string) error {
	text = later.ReplaceAllStringFunc(text, func(found string) string {
		after, _ := time.ParseDuration(strings.Trim(found, "<now+>")) // empty is none
		return time.Now().Add(after).UTC().Format(time.RFC3339)
	})
	var under []string
	if subresource != "" {
		under = append(under, subresource)
	}
	_, err := s.client(kind).Patch(context.Background(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, under...)
	return tolerate(err)
}

// tolerate ignores that an object is gone, as it may be in a random story.
func tolerate(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func phaseOf(machine map[string]any) mcmapi.MachinePhase {
	phase, _, _ := unstructured.NestedString(machine, "status", "currentStatus", "phase")
	return mcmapi.MachinePhase(phase)
}
