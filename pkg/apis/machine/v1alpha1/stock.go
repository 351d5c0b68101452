// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

// The kinds that are machine-controller-manager's own. The markers here are added to its own when
// CRDs and clients are generated.
type (
	// +kubebuilder:printcolumn:name="Reserve",type=date,JSONPath=`.spec.nodeTemplate.metadata.annotations['evenkeel\.machine\.sapcloud\.io/reserve']`,description="Time since the machine entered the reserve; empty while it serves."
	Machine          = mcm.Machine
	MachineList      = mcm.MachineList
	MachineSet       = mcm.MachineSet
	MachineSetList   = mcm.MachineSetList
	MachineClass     = mcm.MachineClass
	MachineClassList = mcm.MachineClassList
)

// What a MachineDeployment inlines.
type (
	StockMachineDeploymentSpec   = mcm.MachineDeploymentSpec
	StockMachineDeploymentStatus = mcm.MachineDeploymentStatus
)

// The parts that the kinds are made of.
type (
	ClassSpec                      = mcm.ClassSpec
	ConditionStatus                = mcm.ConditionStatus
	CurrentStatus                  = mcm.CurrentStatus
	InPlaceUpdateMachineDeployment = mcm.InPlaceUpdateMachineDeployment
	LastOperation                  = mcm.LastOperation
	MachineConfiguration           = mcm.MachineConfiguration
	MachineDeploymentCondition     = mcm.MachineDeploymentCondition
	MachineDeploymentConditionType = mcm.MachineDeploymentConditionType
	MachineDeploymentStrategy      = mcm.MachineDeploymentStrategy
	MachineDeploymentStrategyType  = mcm.MachineDeploymentStrategyType
	MachineOperationType           = mcm.MachineOperationType
	MachinePhase                   = mcm.MachinePhase
	MachineSetCondition            = mcm.MachineSetCondition
	MachineSetConditionType        = mcm.MachineSetConditionType
	MachineSetSpec                 = mcm.MachineSetSpec
	MachineSetStatus               = mcm.MachineSetStatus
	MachineSpec                    = mcm.MachineSpec
	MachineState                   = mcm.MachineState
	MachineStatus                  = mcm.MachineStatus
	MachineSummary                 = mcm.MachineSummary
	MachineTemplateSpec            = mcm.MachineTemplateSpec
	NodeTemplate                   = mcm.NodeTemplate
	NodeTemplateSpec               = mcm.NodeTemplateSpec
	OrchestrationType              = mcm.OrchestrationType
	RollbackConfig                 = mcm.RollbackConfig
	RollingUpdateMachineDeployment = mcm.RollingUpdateMachineDeployment
	UpdateConfiguration            = mcm.UpdateConfiguration
)
