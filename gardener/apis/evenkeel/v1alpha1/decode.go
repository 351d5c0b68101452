// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	stdjson "encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/json"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

const fields = "pools (each with name, and excess or bounds, and balance), capacityBuffers, accounting and autoscaler"

// Decode reads a providerConfig and sets defaults. Nothing at all is a configuration without pools.
func Decode(raw []byte) (*EvenkeelConfig, error) {
	c, unknown, err := decode(raw)
	if err == nil && unknown != nil {
		return nil, fmt.Errorf("decode %s: %w; write each field once; the fields are %s", Kind, unknown, fields)
	}
	return c, err
}

// DecodeKnown reads a configuration that was accepted, maybe by a later version of the extension. It
// leaves out fields that this version does not know, and an accounting with which the manager would
// not start.
func DecodeKnown(raw []byte) (*EvenkeelConfig, error) {
	c, _, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if _, err := machine.ParseAccounting(string(c.Accounting)); err != nil {
		c.Accounting = machine.AccountingInclusive
	}
	return c, nil
}

// decode also returns what is unknown or there twice.
func decode(raw []byte) (c *EvenkeelConfig, unknown, err error) {
	c = &EvenkeelConfig{}
	if len(raw) == 0 || string(raw) == "null" {
		c.APIVersion, c.Kind = APIVersion, Kind
		c.setDefaults()
		return c, nil, nil
	}
	strict, err := json.UnmarshalStrict(raw, c)
	if err != nil {
		return nil, nil, fmt.Errorf("decode %s: %w; write an object with apiVersion, kind, %s", Kind, err, fields)
	}
	if c.APIVersion != APIVersion || c.Kind != Kind {
		return nil, nil, fmt.Errorf("decode apiVersion %.80q, kind %.80q: write apiVersion: %s and kind: %s", c.APIVersion, c.Kind, APIVersion, Kind)
	}
	c.setDefaults()
	return c, errors.Join(strict...), nil
}

// setDefaults is idempotent.
func (c *EvenkeelConfig) setDefaults() {
	if c.Accounting == "" {
		c.Accounting = machine.AccountingInclusive
	}
	if c.Autoscaler == "" {
		c.Autoscaler = AutoscalerFork
	}
}

// Encode is the form that [Decode] reads.
func Encode(c *EvenkeelConfig) ([]byte, error) {
	raw, err := stdjson.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", Kind, err)
	}
	return raw, nil
}
