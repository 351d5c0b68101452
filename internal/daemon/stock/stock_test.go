// SPDX-License-Identifier: Apache-2.0

package stock

import (
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/handlers"
)

func TestHealth(t *testing.T) {
	handlers.UpdateHealth(true)
	if err := Health(); err != nil {
		t.Error(err)
	}
	handlers.UpdateHealth(false)
	if Health() == nil {
		t.Error("machine-controller-manager says that it has stopped, and counts as healthy")
	}
}
