package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"slurmlet.io/test/lab/controlplane/internal/cluster"
	"slurmlet.io/test/lab/controlplane/internal/pki"
)

const (
	kubeletClientUser = "kube-apiserver-kubelet-client"
	getNodesRole      = "kubeadm:get-nodes"
	clusterInfoName   = "cluster-info"
	clusterInfoRole   = "kubeadm:bootstrap-signer-clusterinfo"
)

// prepareCluster makes the objects that kubeadm makes in a new cluster for
// nodes to join it, and waits for those that the cluster makes by itself.
func prepareCluster(ctx context.Context, client kubernetes.Interface, s *supervisor) error {
	if err := prepareRoles(ctx, client, !s.options.noAutoApprove); err != nil {
		return err
	}
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		err := eventually(ctx, func() error {
			_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := publishClusterInfo(ctx, client, s); err != nil {
		return err
	}
	if s.find(controllerManagerName) == nil {
		return nil // nobody makes service accounts
	}
	return eventually(ctx, func() error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// prepareRoles lets the holders of bootstrap tokens ask for a node's
// certificate, and the API server's kubelet client use the kubelet API.
func prepareRoles(ctx context.Context, client kubernetes.Interface, autoApprove bool) error {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: getNodesRole},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
	}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	const approve = "system:certificates.k8s.io:certificatesigningrequests:"
	for _, b := range []struct {
		name, role, kind, subject string
		wanted                    bool
	}{
		{"kubeadm:cluster-admins", "cluster-admin", rbacv1.GroupKind, "kubeadm:cluster-admins", true},
		{"kubeadm:kubelet-bootstrap", "system:node-bootstrapper", rbacv1.GroupKind, bootstrapGroup, true},
		{getNodesRole, getNodesRole, rbacv1.GroupKind, bootstrapGroup, true},
		{"kubeadm:node-autoapprove-bootstrap", approve + "nodeclient", rbacv1.GroupKind, bootstrapGroup, autoApprove},
		{"kubeadm:node-autoapprove-certificate-rotation", approve + "selfnodeclient", rbacv1.GroupKind, cluster.NodesGroup, autoApprove},
		{"kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", rbacv1.UserKind, kubeletClientUser, true},
	} {
		var err error
		if b.wanted {
			_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: b.name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: b.kind, Name: b.subject}},
			}, metav1.CreateOptions{})
		} else {
			err = client.RbacV1().ClusterRoleBindings().Delete(ctx, b.name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// publishClusterInfo writes the address and CA of the cluster where everybody
// can read it. The controller manager signs it with each bootstrap token.
func publishClusterInfo(ctx context.Context, client kubernetes.Interface, s *supervisor) error {
	ca, err := os.ReadFile(s.layout.PKI(cluster.CAName + ".crt"))
	if err != nil {
		return err
	}
	info := pki.Kubeconfig{Server: s.ports.Server(), Cluster: cluster.Name, CA: ca}
	_, err = client.CoreV1().ConfigMaps(metav1.NamespacePublic).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: clusterInfoName},
		Data:       map[string]string{"kubeconfig": string(info.Encode())},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = client.RbacV1().Roles(metav1.NamespacePublic).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: clusterInfoRole},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{clusterInfoName}, Verbs: []string{"get"},
		}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = client.RbacV1().RoleBindings(metav1.NamespacePublic).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: clusterInfoRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: clusterInfoRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:anonymous"}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// eventually calls f until it succeeds or ctx ends.
func eventually(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		case <-time.After(probeInterval):
		}
	}
}
