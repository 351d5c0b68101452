// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/evenkeel/evenkeel/internal/overview"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/controller/booking/plan"
)

// Request explains a ProvisioningRequest.
func Request(o overview.Objects, name string) (Account, error) {
	r, err := findInTarget(o.Requests, "provisioningrequest", name, o)
	if err != nil {
		return Account{}, err
	}
	a := Account{See: []string{"docs/jobs.md: what it does"}}
	shown := overview.New(overview.Objects{At: o.At, Requests: []*provisioningv1.ProvisioningRequest{r}}).Requests
	if len(shown) == 0 {
		a.Title = "ProvisioningRequest " + name + ": not served by Evenkeel"
		a.addReason("Its class is %s, so Evenkeel does not serve it.", r.Spec.ProvisioningClassName)
		return a, nil
	}
	one := shown[0]
	a.Title = fmt.Sprintf("ProvisioningRequest %s: %s", name, cmp.Or(one.Ready.Reason, "not seen yet"))
	a.addFact("Pods", "%d", one.Pods)
	a.addFact("Booked", "%s", orNone(one.Booked))
	if one.Booked != "" {
		a.addFact("Not used yet", "%s", cmp.Or(one.Left, "none"))
	}
	for _, c := range r.Status.Conditions {
		a.addFact(c.Type, "%s, %s: %s", c.Status, c.Reason, c.Message)
	}
	requestWhy(&a, r, one, o.At)
	return a, nil
}

// requestWhy describes why a request is in its state, and what happens next.
func requestWhy(a *Account, r *provisioningv1.ProvisioningRequest, one overview.Request, now time.Time) {
	a.addReason("Only ready reserve machines are booked, and either for all of its pods or for none.")
	switch one.Ready.Reason {
	case provisioningv1.StateProvisioned:
		a.addReason("Only pods of namespace %s with the annotation %s: %s get the machines.", r.Namespace, provisioningv1.ConsumeAnnotation, r.Name)
		if left := plan.BookedUntil(r).Sub(now); one.Left != "" {
			a.addNext("The booking of machines that its pods do not use ends in %s.", duration.HumanDuration(max(0, left)))
		}
	case provisioningv1.StateWaiting:
		a.addReason("It books nothing while it waits, so a smaller request can be served before it.")
		if until, limited := plan.WaitsUntil(r); limited {
			a.addNext("It fails in %s unless it is served before.", duration.HumanDuration(max(0, until.Sub(now))))
		}
		a.addNext("It is served once ready reserve machines have room for all of its pods.")
	case provisioningv1.StateFailed, provisioningv1.StateExpired:
		a.addNext("It has ended. To ask again, create another request.")
	}
}

// findInTarget finds an object in the namespaces of the target cluster, which -n does not choose. Its
// name is NAME or NAMESPACE/NAME.
func findInTarget[T metav1.Object](all []T, kind, name string, o overview.Objects) (T, error) {
	base := name
	if namespace, rest, both := strings.Cut(name, "/"); both {
		all, base = slices.DeleteFunc(slices.Clone(all), func(one T) bool { return one.GetNamespace() != namespace }), rest
	}
	one, err := findObject(all, kind, base, o)
	if errors.Is(err, ErrAmbiguous) {
		err = fmt.Errorf("%w by NAMESPACE/%s", err, base)
	}
	return one, err
}
