// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Check returns why this computer cannot run real machines, or nil.
func Check() error {
	if os.Geteuid() != 0 {
		return errors.New("real machines need root: they have namespaces and cgroups of their own")
	}
	if _, err := hierarchies(); err != nil {
		return fmt.Errorf("real machines need cgroups: %w", err)
	}
	const probe = "evenkeel-probe"
	if err := errors.Join(makeEverywhere(probe), removeCgroup(probe)); err != nil {
		return fmt.Errorf("real machines need cgroups that can be created: %w", err)
	}
	trial := exec.Command("/proc/self/exe", "-h")
	trial.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if err := trial.Start(); err != nil {
		return fmt.Errorf("real machines need namespaces: %w", err)
	}
	_ = trial.Wait()
	if _, err := exec.LookPath(compiler()); err != nil {
		return fmt.Errorf("runc is built with a C compiler: %w", err)
	}
	return nil
}

// inotifyInstances is how many inotify instances a user needs. A machine has about ten, and where no more can
// be had, its kubelet does not start. Many computers allow 128.
const inotifyInstances = 1024

// allowInstances raises the limit of inotify instances, if it is too low.
func allowInstances() (raised bool, err error) {
	const limit = "/proc/sys/fs/inotify/max_user_instances"
	text, err := os.ReadFile(limit)
	if err != nil {
		return false, err
	}
	if is, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || is >= inotifyInstances {
		return false, err
	}
	return true, os.WriteFile(limit, []byte(strconv.Itoa(inotifyInstances)), 0o644)
}

func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return strings.Fields(cc)[0]
	}
	return "gcc"
}

// reservedFor returns what a Node must have less than this computer to offer that much.
func reservedFor(allocatable corev1.ResourceList) (map[string]string, error) {
	memory, err := totalMemory()
	if err != nil {
		return nil, err
	}
	reserved := map[string]string{}
	for name, total := range map[corev1.ResourceName]*resource.Quantity{
		corev1.ResourceCPU: resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI), corev1.ResourceMemory: memory,
	} {
		if total.Sub(allocatable[name]); total.Sign() > 0 {
			reserved[string(name)] = total.String()
		}
	}
	return reserved, nil
}

func totalMemory() (*resource.Quantity, error) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			return resource.NewQuantity(kib<<10, resource.BinarySI), err
		}
	}
	return nil, errors.New("/proc/meminfo has no MemTotal")
}
