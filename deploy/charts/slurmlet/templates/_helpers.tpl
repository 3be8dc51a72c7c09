{{/* A manifest of deploy/ as it is, but for its namespace: that of the release. */}}
{{- define "slurmlet.manifest" -}}
{{- .root.Files.Get (printf "files/%s" .name) | replace "namespace: kube-system" (printf "namespace: %s" .root.Release.Namespace) -}}
{{- end -}}
