{{- /*
What no schema can say: values that do not go together. Each stops the rendering
with a sentence that names them.
*/}}

{{- /* Milliseconds of a time such as 20s, 500ms or 1h30m. */}}
{{- define "kite-common.milliseconds" -}}
{{- $sum := 0 }}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 }}
{{- range regexFindAll "[0-9]+(ms|s|m|h)" . -1 }}
{{- $sum = add $sum (mul (regexFind "[0-9]+" . | int64) (get $units (regexFind "[a-z]+" .))) }}
{{- end }}
{{- $sum }}
{{- end }}

{{- define "kite-common.check" -}}
{{- $values := .root.Values }}
{{- $grace := include "kite-common.milliseconds" $values.shutdownGrace | int64 }}
{{- if le (mul 1000 (int64 $values.terminationGracePeriodSeconds)) $grace }}
{{- fail (printf "%s: terminationGracePeriodSeconds (%v) must be longer than shutdownGrace (%v), or running passes are killed and the Lease is not given back" .controller $values.terminationGracePeriodSeconds $values.shutdownGrace) }}
{{- end }}
{{- include "kite-common.checkElection" . }}
{{- $metrics := $values.metrics }}
{{- if and $metrics.serviceMonitor.enabled $metrics.podMonitor.enabled }}
{{- fail (printf "%s: metrics.serviceMonitor.enabled and metrics.podMonitor.enabled are both true, so everything would be scraped twice; choose one" .controller) }}
{{- end }}
{{- if and $metrics.secure.enabled (not $metrics.secure.certificateSecret) }}
{{- fail (printf "%s: metrics.secure.enabled needs metrics.secure.certificateSecret, the name of a Secret of the type kubernetes.io/tls" .controller) }}
{{- end }}
{{- if and $metrics.secure.enabled (eq (int $metrics.secure.port) (int $metrics.port)) }}
{{- fail (printf "%s: metrics.secure.port and metrics.port (%v) must differ: probes come without TLS" .controller $metrics.port) }}
{{- end }}
{{- if and $metrics.serviceMonitor.enabled (not $metrics.service.enabled) }}
{{- fail (printf "%s: metrics.serviceMonitor.enabled needs metrics.service.enabled; use metrics.podMonitor.enabled where there is to be no Service" .controller) }}
{{- end }}
{{- end }}

{{- define "kite-common.checkElection" -}}
{{- $election := .root.Values.leaderElection }}
{{- if $election.enabled }}
{{- $lease := include "kite-common.milliseconds" $election.leaseDuration | int64 }}
{{- $interval := include "kite-common.milliseconds" $election.renewInterval | int64 }}
{{- $deadline := include "kite-common.milliseconds" $election.renewDeadline | int64 }}
{{- $retry := include "kite-common.milliseconds" $election.retryInterval | int64 }}
{{- if ge (add $deadline $retry) $lease }}
{{- fail (printf "%s: leaderElection.renewDeadline plus leaderElection.retryInterval must be less than leaderElection.leaseDuration (%v), or two replicas could work at the same time" .controller $election.leaseDuration) }}
{{- end }}
{{- if gt (add $interval $retry) $deadline }}
{{- fail (printf "%s: leaderElection.renewInterval plus leaderElection.retryInterval must not exceed leaderElection.renewDeadline (%v), or one failed renewal would end the leadership" .controller $election.renewDeadline) }}
{{- end }}
{{- else if gt (int .root.Values.replicas) 1 }}
{{- fail (printf "%s: replicas (%v) with leaderElection.enabled=false would all work at the same time; turn the election on" .controller .root.Values.replicas) }}
{{- end }}
{{- end }}
