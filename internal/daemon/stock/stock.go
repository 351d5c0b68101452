// SPDX-License-Identifier: Apache-2.0

// Package stock is what our daemons take from machine-controller-manager's: its flags for the election, and its health.
package stock

import (
	"errors"
	"net/http"

	"github.com/gardener/machine-controller-manager/pkg/handlers"
	mcmoptions "github.com/gardener/machine-controller-manager/pkg/options"

	"github.com/evenkeel/evenkeel/internal/daemon"
)

// Election returns what the flags of the election say.
func Election(l mcmoptions.LeaderElectionConfiguration) daemon.Election {
	return daemon.Election{
		LeaderElect: l.LeaderElect, ResourceLock: l.ResourceLock,
		LeaseDuration: l.LeaseDuration.Duration, RenewDeadline: l.RenewDeadline.Duration, RetryPeriod: l.RetryPeriod.Duration,
	}
}

// Health is machine-controller-manager's own health, which it exposes only over HTTP.
func Health() error {
	var status statusOnly
	handlers.Healthz(&status, nil)
	if status != http.StatusOK {
		return errors.New("the controllers have stopped")
	}
	return nil
}

type statusOnly int

func (s *statusOnly) Header() http.Header            { return http.Header{} }
func (s *statusOnly) Write(body []byte) (int, error) { return len(body), nil }
func (s *statusOnly) WriteHeader(code int)           { *s = statusOnly(code) }
