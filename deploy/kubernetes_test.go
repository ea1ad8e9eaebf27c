package deploy_test

import (
	"fmt"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestCronJob: the pod has no more rights than the work needs: those of the restricted Pod Security
// Standard, no token of the cluster, and nothing to write to but its volumes.
func TestCronJob(t *testing.T) {
	t.Parallel()
	var job map[string]any
	must(t, yaml.Unmarshal([]byte(read(t, "cronjob.yaml")), &job))
	if job["apiVersion"] != "batch/v1" || job["kind"] != "CronJob" {
		t.Errorf("%v %v", job["apiVersion"], job["kind"])
	}
	pod := at(job, "spec", "jobTemplate", "spec", "template", "spec").(map[string]any)
	containers := pod["containers"].([]any)
	if len(containers) != 1 || pod["initContainers"] != nil {
		t.Fatalf("%d containers", len(containers))
	}
	for _, want := range []struct {
		in    any
		path  []string
		value any
	}{
		{job, []string{"spec", "concurrencyPolicy"}, "Forbid"},
		{pod, []string{"automountServiceAccountToken"}, false},
		{pod, []string{"hostNetwork"}, nil},
		{pod, []string{"hostPID"}, nil},
		{pod, []string{"securityContext", "runAsNonRoot"}, true},
		{pod, []string{"securityContext", "runAsUser"}, 65532},
		{pod, []string{"securityContext", "seccompProfile", "type"}, "RuntimeDefault"},
		{containers[0], []string{"securityContext", "allowPrivilegeEscalation"}, false},
		{containers[0], []string{"securityContext", "readOnlyRootFilesystem"}, true},
		{containers[0], []string{"securityContext", "privileged"}, nil},
		{containers[0], []string{"resources", "limits", "memory"}, "512Mi"},
	} {
		if got := at(want.in, want.path...); got != want.value {
			t.Errorf("%v is %v, want %v", want.path, got, want.value)
		}
	}
	capabilities := at(containers[0], "securityContext", "capabilities")
	if fmt.Sprint(capabilities) != "map[drop:[ALL]]" {
		t.Errorf("capabilities: %v", capabilities)
	}
	for _, mount := range at(containers[0], "volumeMounts").([]any) {
		found := false
		for _, volume := range pod["volumes"].([]any) {
			found = found || at(volume, "name") == at(mount, "name")
		}
		if !found {
			t.Errorf("no volume %v", at(mount, "name"))
		}
	}
}

// at is what stands under a path of keys; nil for nothing.
func at(node any, path ...string) any {
	for _, key := range path {
		m, _ := node.(map[string]any)
		node = m[key]
	}
	return node
}
