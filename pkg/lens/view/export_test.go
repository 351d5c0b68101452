// SPDX-License-Identifier: Apache-2.0

package view

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/utils/clock"
)

// Remembered is the number of MachineDeployments whose creations are remembered.
func Remembered(c *Clientset) int {
	c.creations.mu.Lock()
	defer c.creations.mu.Unlock()
	return len(c.creations.all)
}

// MayRetry reports whether another attempt may succeed after an error.
var MayRetry = mayRetry

// RecentlyRead is the number of frozen MachineSets that are remembered, and the largest one.
func RecentlyRead(c *Clientset) (is, most int) { return len(c.frozenSets.recent), recentlyRead }

// Beginner decides only on creations.
func Beginner(b CreationOptions, c clock.PassiveClock) func(string, *v1alpha1.Machine) (*v1alpha1.Machine, func(*v1alpha1.Machine, error), error) {
	return newCreationTracker(b, c).startCreation
}

// Viewing returns how a Clientset shows and restores MachineDeployments that have these spares.
func Viewing(spares []Spare, ready int32) (show func(*v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment, restore func([]byte, *v1alpha1.MachineDeployment) ([]byte, error)) {
	return ViewingReserve(Reserve{Starting: spares, Ready: ready})
}

// ViewingReserve returns how a Clientset shows and restores MachineDeployments that have this reserve.
func ViewingReserve(r Reserve) (show func(*v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment, restore func([]byte, *v1alpha1.MachineDeployment) ([]byte, error)) {
	c := &Clientset{spares: func(*v1alpha1.MachineDeployment) Reserve { return r }}
	return c.showDeployment, c.restoreDeployment
}
