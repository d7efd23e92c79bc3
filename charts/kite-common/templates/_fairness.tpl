{{- /*
Where the API server queues a controller's requests. Without this they share the level of
all ServiceAccounts, with one queue for each account: a storm in one tenant's namespace
stands before the work for another, and before the renewal of the Lease.
*/}}
{{- define "kite-common.flowschema" -}}
{{- $flow := .root.Values.flowSchema }}
{{- if $flow.enabled }}
{{- $account := dict "name" .controller "namespace" .root.Release.Namespace }}
{{- $who := list (dict "kind" "ServiceAccount" "serviceAccount" $account) }}
{{- $lease := list (dict
  "apiGroups" (list "coordination.k8s.io")
  "resources" (list "leases")
  "verbs" (list "get" "create" "update" "patch" "list" "watch")
  "namespaces" (list .root.Release.Namespace)) }}
{{- $work := list (dict
  "apiGroups" (list "*")
  "resources" (list "*")
  "verbs" (list "*")
  "namespaces" (list "*")
  "clusterScope" true) }}
{{- range list
  (dict "suffix" "-lease" "level" "leader-election" "before" 1 "rules" $lease "by" "ByUser")
  (dict "suffix" "" "level" $flow.priorityLevel "before" 0 "rules" $work "by" "ByNamespace") }}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: {{ $.controller }}{{ .suffix }}
  labels:
    {{- include "kite-common.labels" $ | nindent 4 }}
  {{- with include "kite-common.annotations" $ }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  priorityLevelConfiguration:
    name: {{ toYaml .level }}
  matchingPrecedence: {{ sub (int $flow.matchingPrecedence) .before }}
  distinguisherMethod:
    type: {{ .by }}
  rules:
    - subjects:
        {{- toYaml $who | nindent 8 }}
      resourceRules:
        {{- toYaml .rules | nindent 8 }}
{{- end }}
{{- end }}
{{- end }}
