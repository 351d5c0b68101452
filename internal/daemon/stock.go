// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/handlers"
	mcmoptions "github.com/gardener/machine-controller-manager/pkg/options"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// What both daemons take from the stock ones: the flags for the endpoint and the election, and the
// health.

// Endpoint returns the address to serve on: bind if set, otherwise --address if given, otherwise
// all addresses in a pod, where probes come from outside, and loopback elsewhere.
func Endpoint(bind, address string, addressGiven bool, port int32) string {
	switch {
	case bind != "":
		address = bind
	case addressGiven:
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		address = "0.0.0.0"
	default:
		address = "127.0.0.1"
	}
	return net.JoinHostPort(address, strconv.Itoa(int(port)))
}

// CheckElection returns what is wrong with the flags of the election.
func CheckElection(l mcmoptions.LeaderElectionConfiguration) error {
	if !l.LeaderElect {
		return nil
	}
	var errs []error
	if l.ResourceLock != resourcelock.LeasesResourceLock {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-lock: %q is not supported, only %q", l.ResourceLock, resourcelock.LeasesResourceLock))
	}
	whole := l.LeaseDuration.Duration.Truncate(time.Second) // as a Lease keeps it, and others read it
	if whole <= l.RenewDeadline.Duration || l.RenewDeadline.Duration <= l.RetryPeriod.Duration || l.RetryPeriod.Duration <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration %s, --leader-elect-renew-deadline %s and --leader-elect-retry-period %s: each must be longer than the next, the first one in whole seconds",
			l.LeaseDuration.Duration, l.RenewDeadline.Duration, l.RetryPeriod.Duration))
	}
	return errors.Join(errs...)
}

// StockHealth is machine-controller-manager's own health, which it exposes only over HTTP.
func StockHealth() error {
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
