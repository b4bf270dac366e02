"""Questions over whole ACL sets, by exact set algebra; its room is kept in the layers, and still empty."""
