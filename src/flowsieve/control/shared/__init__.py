"""What several controllers share in etcd: who leads, and by which number."""
