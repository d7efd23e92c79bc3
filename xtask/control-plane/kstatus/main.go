// Command kstatus is a filter around kstatus of cli-utils, which decides when
// kpt, Flux and others call an object ready. Each line of standard input is one
// JSON object; the answer is one line {"status":…,"message":…}, or
// {"error":…} when kstatus cannot judge it. It reads no cluster.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type answer struct {
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
}

func judge(line []byte) answer {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(line); err != nil {
		return answer{Error: err.Error()}
	}
	result, err := status.Compute(object)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Status: result.Status.String(), Message: result.Message}
}

func main() {
	// A line may hold a whole object with its managed fields.
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := json.NewEncoder(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 1 {
			if err := output.Encode(judge(line)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}
