// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/reachability"
)

const (
	// requestTimeout also ends watches, which are then resumed.
	requestTimeout = time.Minute
	// reportTimeout limits the last write of a process that ends by itself.
	reportTimeout = 2 * time.Second
)

// Process is one run of a daemon: its clients, its events and its turn.
type Process struct {
	// Name is the user agent and the source of events.
	Name string
	// Namespace and Lease are where processes take turns.
	Namespace, Lease string
	// Kubeconfig of the cluster of the lease; see [Config].
	Kubeconfig string
	// QPS and Burst limit the rate of each client.
	QPS   float32
	Burst int
	// Wrap, if set, is around the transport of what Connect returns.
	Wrap transport.WrapperFunc

	Gate  Gate
	Ready Readiness
	// Recorder is set by Record.
	Recorder record.EventRecorder
	// Identity is the holder of the lease while this process leads. Elect sets it.
	Identity string
}

// Connect returns a config whose writes stop when the process gives up its turn.
func (p *Process) Connect(kubeconfig string) (*rest.Config, error) {
	config, err := Config(kubeconfig)
	if err != nil {
		return nil, err
	}
	config = rest.AddUserAgent(p.Gate.Behind(config), p.Name)
	config.QPS, config.Burst, config.Timeout = p.QPS, p.Burst, requestTimeout
	if p.Wrap != nil {
		config.Wrap(p.Wrap)
	}
	return config, nil
}

// Past returns a client that bypasses the gate, with a user agent and a rate limit of its own.
func (p *Process) Past(agent string, set func(*rest.Config)) (kubernetes.Interface, error) {
	config, err := Config(p.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("control cluster: %w", err)
	}
	config = rest.AddUserAgent(config, agent)
	set(config)
	client, err := connect.Core(config)
	if err != nil {
		return nil, fmt.Errorf("make client %s: %w", agent, err)
	}
	return client, nil
}

// Record starts writing events about kinds of a scheme. It bypasses the gate and outlives ctx, because giving up the
// lease is an event, too. The caller shuts it down.
func (p *Process) Record(ctx context.Context, kinds ...func(*runtime.Scheme) error) (record.EventBroadcaster, error) {
	client, err := p.Past(p.Name, func(config *rest.Config) {
		config.QPS, config.Burst, config.Timeout = p.QPS, p.Burst, requestTimeout
	})
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range append(kinds, corev1.AddToScheme) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("kinds of events: %w", err)
		}
	}
	events := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	p.Recorder = events.NewRecorder(scheme, corev1.EventSource{Component: p.Name})
	return events, nil
}

// Election is how processes take turns.
type Election struct {
	// LeaderElect is false for a process that is always alone.
	LeaderElect                               bool
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// ResourceLock is the kind of the lock.
	ResourceLock string
}

// Validate returns what is wrong with the flags of the election.
func (e Election) Validate() error {
	if !e.LeaderElect {
		return nil
	}
	var errs []error
	if e.ResourceLock != resourcelock.LeasesResourceLock {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-lock: %q is not supported, only %q", e.ResourceLock, resourcelock.LeasesResourceLock))
	}
	whole := e.LeaseDuration.Truncate(time.Second) // as a Lease keeps it, and others read it
	if whole <= e.RenewDeadline || e.RenewDeadline <= e.RetryPeriod || e.RetryPeriod <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration %s, --leader-elect-renew-deadline %s and --leader-elect-retry-period %s: each must be longer than the next, the first one in whole seconds",
			e.LeaseDuration, e.RenewDeadline, e.RetryPeriod))
	}
	return errors.Join(errs...)
}

// Elect waits for the lease and leads; see [Elect]. The cluster is told until when another process watched it.
func (p *Process) Elect(ctx context.Context, e Election, watchedUntil func(time.Time), lead func(context.Context) error) error {
	if !e.LeaderElect {
		return lead(ctx)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name myself: %w", err)
	}
	p.Identity = host + "_" + string(uuid.NewUUID())
	// The lease is renewed and released while the work ends, so its client bypasses the gate.
	client, err := p.Past(p.Name+"-leader-election", func(config *rest.Config) { config.Timeout = e.RenewDeadline / 2 })
	if err != nil {
		return err
	}
	p.Ready.Wait()
	return Elect(ctx, client, Lease{
		Namespace: p.Namespace, Name: p.Lease, Identity: p.Identity,
		Duration: e.LeaseDuration, RenewDeadline: e.RenewDeadline, RetryPeriod: e.RetryPeriod,
		Recorder: p.Recorder, Renewed: watchedUntil,
	}, lead)
}

// Lead runs the work of a turn until ctx ends or one part of it does, behind the gate. If the storage of a cluster was
// restored, it reports that.
func (p *Process) Lead(ctx context.Context, parts ...func(context.Context) error) error {
	err := Together(ctx, append(parts, p.Gate.Run)...)
	if errors.Is(err, reachability.ErrRestored) {
		p.reportRestore(ctx, err)
	}
	if ctx.Err() == nil && err == nil {
		return errors.New("a controller ended by itself")
	}
	return err
}

// reportRestore records on the lease why the process ends: the storage was restored. The recorder would write the event
// in the background, and the process would end first.
func (p *Process) reportRestore(ctx context.Context, cause error) {
	logger := klog.FromContext(ctx)
	logger.Error(cause, "Ending, to start again: caches and watches show objects that no longer exist")
	client, err := p.Past(p.Name, func(config *rest.Config) { config.Timeout = reportTimeout })
	if err != nil {
		logger.Error(err, "Event StorageRestored was not written")
		return
	}
	now := metav1.Now()
	_, err = client.CoreV1().Events(p.Namespace).Create(context.WithoutCancel(ctx), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: p.Lease + "-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: p.Namespace, Name: p.Lease},
		Source:         corev1.EventSource{Component: p.Name},
		Type:           corev1.EventTypeWarning, Reason: "StorageRestored", Message: fmt.Sprintf("%s ends, to start again: %v", p.Name, cause),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		logger.Error(err, "Event StorageRestored was not written")
	}
}

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
