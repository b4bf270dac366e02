"""Whole metadata directories: formatting, reading, repair, and ACLs from files."""

from kustos.metadata.directory.acl_files import (
    encode_acl_snapshot,
    read_acl_files,
    read_metadata,
    read_metadata_file,
)
from kustos.metadata.directory.bulk_acls import BulkAcls
from kustos.metadata.directory.format import (
    DirectoryInfo,
    InitialScramUser,
    describe_directory,
    format_directory,
    logged_settings,
    read_decoy_secret,
)
from kustos.metadata.directory.loader import read_image, require_beginning
from kustos.metadata.directory.repair import Repair, carry_out, plan_repair

__all__ = [
    "BulkAcls",
    "DirectoryInfo",
    "InitialScramUser",
    "Repair",
    "carry_out",
    "describe_directory",
    "encode_acl_snapshot",
    "format_directory",
    "logged_settings",
    "plan_repair",
    "read_acl_files",
    "read_decoy_secret",
    "read_image",
    "read_metadata",
    "read_metadata_file",
    "require_beginning",
]
