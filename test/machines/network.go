// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// nodeDevice has the address of the Node, which kubelets want to find on a device that is not loopback.
const nodeDevice = "node0"

// setUpNetwork brings up what a machine's network has: loopback, and a bridge without ports that has its
// address.
func (s *spec) setUpNetwork() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(fd)
	for _, step := range []struct {
		what    string
		request uint
		change  func(*unix.Ifreq) error
		device  string
	}{
		{"bring up loopback", unix.SIOCSIFFLAGS, up, "lo"},
		{"add device", unix.SIOCBRADDBR, nothing, nodeDevice},
		{"set address", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(net.ParseIP(s.Address).To4()) }, nodeDevice},
		{"bring up device", unix.SIOCSIFFLAGS, up, nodeDevice},
	} {
		r, err := unix.NewIfreq(step.device)
		if err == nil {
			err = step.change(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, step.request, r)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", step.what, step.device, err)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

func up(r *unix.Ifreq) error {
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return nil
}

func nothing(*unix.Ifreq) error { return nil }
