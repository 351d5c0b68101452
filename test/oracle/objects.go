// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// pool creates a MachineDeployment with a rolling update.
func pool(replicas int32, change ...func(*mcmapi.MachineDeployment)) Create {
	return Create{fixture.MachineDeployment("pool", replicas, change...)}
}

// rolling is the strategy RollingUpdate.
func rolling(surge, unavailable string) func(*mcmapi.MachineDeployment) {
	return func(d *mcmapi.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate.UpdateConfiguration = limits(surge, unavailable)
	}
}

func limits(surge, unavailable string) mcmapi.UpdateConfiguration {
	s, u := intstr.Parse(surge), intstr.Parse(unavailable)
	return mcmapi.UpdateConfiguration{MaxSurge: &s, MaxUnavailable: &u}
}

func recreate(d *mcmapi.MachineDeployment) {
	d.Spec.Strategy = mcmapi.MachineDeploymentStrategy{Type: mcmapi.RecreateMachineDeploymentStrategyType}
}

// inPlace is the strategy InPlaceUpdate.
func inPlace(how mcmapi.OrchestrationType, surge, unavailable string) func(*mcmapi.MachineDeployment) {
	return func(d *mcmapi.MachineDeployment) {
		d.Spec.Strategy = mcmapi.MachineDeploymentStrategy{
			Type:          mcmapi.InPlaceUpdateMachineDeploymentStrategyType,
			InPlaceUpdate: &mcmapi.InPlaceUpdateMachineDeployment{UpdateConfiguration: limits(surge, unavailable), OrchestrationType: how},
		}
	}
}

// set creates a standalone MachineSet.
func set(name string, replicas int32, change ...func(*mcmapi.MachineSet)) Create {
	s := &mcmapi.MachineSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcmapi.SchemeGroupVersion.String(), Kind: Set},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace},
		Spec: mcmapi.MachineSetSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}},
			Template: fixture.MachineDeployment(name, 0).Spec.Template,
		},
	}
	for _, c := range change {
		c(s)
	}
	return Create{s}
}

// machine creates a machine without owner.
func machine(name, label string, change ...func(*mcmapi.Machine)) Create {
	return Create{fixture.Machine(name, func(m *mcmapi.Machine) {
		m.Labels = map[string]string{"name": label}
		for _, c := range change {
			c(m)
		}
	})}
}

func edit(format string, args ...any) Patch {
	return Patch{Kind: Deployment, Name: "pool", Merge: fmt.Sprintf(format, args...)}
}

func scale(replicas int) Patch { return edit(`{"spec":{"replicas":%d}}`, replicas) }

func editSet(name, format string, args ...any) Patch {
	return Patch{Kind: Set, Name: name, Merge: fmt.Sprintf(format, args...)}
}

func scaleSet(name string, replicas int) Patch {
	return editSet(name, `{"spec":{"replicas":%d}}`, replicas)
}

// class changes the MachineClass, which makes a new MachineSet.
func class(name string) Patch {
	return edit(`{"spec":{"template":{"spec":{"class":{"name":%q}}}}}`, name)
}

// mark sets an annotation of a machine.
func mark(at At, key, value string) PatchMachine {
	return PatchMachine{At: at, Merge: fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)}
}

func nth(n int) At { return At{"pool", n} }

// fail makes a machine Failed at once.
func fail(at At) PatchMachine {
	return PatchMachine{At: at, Subresource: "status", Merge: `{"status":{"currentStatus":{"phase":"Failed","lastUpdateTime":"<now>"},"lastOperation":{"state":"Failed","type":"HealthCheck","description":"failed"}}}`}
}

// soon plays acts with so little time between them that there is no rest.
func soon(acts ...Act) Together { return Together{Pause: 300 * time.Millisecond, Acts: acts} }

// hashOf is the hash of the template of a MachineDeployment.
func hashOf(c Create) string {
	d := c.Object.(*mcmapi.MachineDeployment) // as pool makes it
	return fmt.Sprint(controller.ComputeHash(&d.Spec.Template, nil))
}

// firstName is the name of the MachineSet that pool gets.
func firstName(c Create) string { return "pool-" + rand.SafeEncodeString(hashOf(c))[:5] }
