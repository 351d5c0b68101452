// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the configuration of Evenkeel's Gardener extension: the providerConfig of the
// extension in a Shoot.
//
//	spec:
//	  extensions:
//	  - type: evenkeel
//	    providerConfig:
//	      apiVersion: evenkeel.extensions.gardener.cloud/v1alpha1
//	      kind: EvenkeelConfig
//	      pools:
//	      - name: shop
//	        excess: 10%
//
// It is read as a whole and strictly: a field that this version does not know is an error, because
// it would be a wish that has no effect.
package v1alpha1
