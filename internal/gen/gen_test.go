// SPDX-License-Identifier: Apache-2.0

package gen_test

import (
	"testing"

	machineinternal "github.com/gardener/machine-controller-manager/pkg/apis/machine"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/validation"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evenkeel/evenkeel/internal/gen"
)

func TestGen(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Gen")
}

var _ = Describe("What is built", func() {
	It("is a MachineDeployment that machine-controller-manager takes for valid", func() {
		scheme := runtime.NewScheme()
		Expect(machineinternal.AddToScheme(scheme)).To(Succeed())
		Expect(machinev1alpha1.AddToScheme(scheme)).To(Succeed())
		d := &machineinternal.MachineDeployment{}
		Expect(scheme.Convert(gen.MachineDeployment("pool", 3), d, nil)).To(Succeed())
		Expect(validation.ValidateMachineDeployment(d)).To(BeEmpty())
	})

	It("is changed as asked", func() {
		d := gen.MachineDeployment("pool", 3, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true })
		Expect(d.Spec.Paused).To(BeTrue())
		Expect(d.Spec.Replicas).To(BeEquivalentTo(3))
	})
})
