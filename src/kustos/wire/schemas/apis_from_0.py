"""APIs from 0 on; `scripts.generate_schemas` writes this."""

from typing import Final

TEXT: Final = """\
api 0 produce 3-13
request 9
ProduceRequest transactional_id:string?=null acks:int16 timeout:timedelta_i32 topic_data:[TopicProduceData]
TopicProduceData topic_id:uuid@13- name:string@-12 partition_data:[PartitionProduceData]
PartitionProduceData index:int32 records:records?
response 9
ProduceResponse responses:[TopicProduceResponse] throttle_time:timedelta_i32
  node_endpoints:[NodeEndpoint]#0@10-
TopicProduceResponse topic_id:uuid@13- name:string@-12 partition_responses:[PartitionProduceResponse]
PartitionProduceResponse index:int32 error_code:error_code base_offset:int64 log_append_time:datetime_i64=-1
  log_start_offset:int64=-1@5- record_errors:[BatchIndexAndErrorMessage]@8- error_message:string?=null@8-
  current_leader:LeaderIdAndEpoch#0@10-
BatchIndexAndErrorMessage batch_index:int32 batch_index_error_message:string?=null
LeaderIdAndEpoch leader_id:int32=-1 leader_epoch:int32=-1
NodeEndpoint node_id:int32 host:string port:int32 rack:string?=null

api 1 fetch 4-18
request 12
FetchRequest cluster_id:string?=null#0@12- replica_state:ReplicaState#1@15- replica_id:int32=-1@-14
  max_wait:timedelta_i32 min_bytes:int32 max_bytes:int32=2147483647 isolation_level:int8 session_id:int32@7-
  session_epoch:int32=-1@7- topics:[FetchTopic] forgotten_topics_data:[ForgottenTopic]@7- rack_id:string@11-
FetchTopic topic_id:uuid@13- topic:string@-12 partitions:[FetchPartition]
FetchPartition partition:int32 current_leader_epoch:int32=-1@9- fetch_offset:int64
  last_fetched_epoch:int32=-1@12- log_start_offset:int64=-1@5- partition_max_bytes:int32
  replica_directory_id:uuid#0@17- high_watermark:int64=9223372036854775807#1@18-
ForgottenTopic topic_id:uuid@13- topic:string@-12 partitions:[int32]
ReplicaState replica_id:int32=-1 replica_epoch:int64=-1
response 12
FetchResponse throttle_time:timedelta_i32 error_code:error_code@7- session_id:int32@7-
  responses:[FetchableTopicResponse] node_endpoints:[NodeEndpoint]#0@16-
FetchableTopicResponse topic_id:uuid@13- topic:string@-12 partitions:[PartitionData]
PartitionData partition_index:int32 error_code:error_code high_watermark:int64 last_stable_offset:int64=-1
  log_start_offset:int64=-1@5- diverging_epoch:EpochEndOffset#0@12- current_leader:LeaderIdAndEpoch#1@12-
  snapshot_id:SnapshotId#2@12- aborted_transactions:[AbortedTransaction]?
  preferred_read_replica:int32=-1@11- records:records?
AbortedTransaction producer_id:int64 first_offset:int64
EpochEndOffset epoch:int32=-1 end_offset:int64=-1
LeaderIdAndEpoch leader_id:int32=-1 leader_epoch:int32=-1
SnapshotId end_offset:int64=-1 epoch:int32=-1
NodeEndpoint node_id:int32 host:string port:int32 rack:string?=null

api 2 list_offsets 1-11
request 6
ListOffsetsRequest replica_id:int32 isolation_level:int8@2- topics:[ListOffsetsTopic]
  timeout:timedelta_i32@10-
ListOffsetsTopic name:string partitions:[ListOffsetsPartition]
ListOffsetsPartition partition_index:int32 current_leader_epoch:int32=-1@4- timestamp:int64
response 6
ListOffsetsResponse throttle_time:timedelta_i32@2- topics:[ListOffsetsTopicResponse]
ListOffsetsTopicResponse name:string partitions:[ListOffsetsPartitionResponse]
ListOffsetsPartitionResponse partition_index:int32 error_code:error_code timestamp:int64=-1 offset:int64=-1
  leader_epoch:int32=-1@4-

api 3 metadata 0-13
request 9
MetadataRequest topics:[MetadataRequestTopic]?@1- allow_auto_topic_creation:bool=true@4-
  include_cluster_authorized_operations:bool@8-10 include_topic_authorized_operations:bool@8-
  topics:[MetadataRequestTopic]@-0
MetadataRequestTopic topic_id:uuid@10- name:string?@10- name:string@-9
response 9
MetadataResponse throttle_time:timedelta_i32@3- brokers:[MetadataResponseBroker] cluster_id:string?=null@2-
  controller_id:int32=-1@1- topics:[MetadataResponseTopic] error_code:error_code@13-
  cluster_authorized_operations:int32=-2147483648@8-10
MetadataResponseBroker node_id:int32 host:string port:int32 rack:string?=null@1-
MetadataResponseTopic error_code:error_code name:string?@12- name:string@-11 topic_id:uuid@10-
  is_internal:bool@1- partitions:[MetadataResponsePartition]
  topic_authorized_operations:int32=-2147483648@8-
MetadataResponsePartition error_code:error_code partition_index:int32 leader_id:int32
  leader_epoch:int32=-1@7- replica_nodes:[int32] isr_nodes:[int32] offline_replicas:[int32]@5-

api 8 offset_commit 2-10
request 8
OffsetCommitRequest group_id:string generation_id_or_member_epoch:int32=-1 member_id:string
  group_instance_id:string?=null@7- retention_time:timedelta_i64=-1@-4 topics:[OffsetCommitRequestTopic]
OffsetCommitRequestTopic topic_id:uuid@10- name:string@-9 partitions:[OffsetCommitRequestPartition]
OffsetCommitRequestPartition partition_index:int32 committed_offset:int64 committed_leader_epoch:int32=-1@6-
  committed_metadata:string?
response 8
OffsetCommitResponse throttle_time:timedelta_i32@3- topics:[OffsetCommitResponseTopic]
OffsetCommitResponseTopic topic_id:uuid@10- name:string@-9 partitions:[OffsetCommitResponsePartition]
OffsetCommitResponsePartition partition_index:int32 error_code:error_code

api 9 offset_fetch 1-10
request 6
OffsetFetchRequest groups:[OffsetFetchRequestGroup]@8- group_id:string@-7
  topics:[OffsetFetchRequestTopic]?@2-7 require_stable:bool@7- topics:[OffsetFetchRequestTopic]@-1
OffsetFetchRequestTopic name:string partition_indexes:[int32]
OffsetFetchRequestGroup group_id:string member_id:string?=null@9- member_epoch:int32=-1@9-
  topics:[OffsetFetchRequestTopics]?
OffsetFetchRequestTopics topic_id:uuid@10- name:string@-9 partition_indexes:[int32]
response 6
OffsetFetchResponse throttle_time:timedelta_i32@3- groups:[OffsetFetchResponseGroup]@8-
  topics:[OffsetFetchResponseTopic]@-7 error_code:error_code@2-7
OffsetFetchResponseTopic name:string partitions:[OffsetFetchResponsePartition]
OffsetFetchResponsePartition partition_index:int32 committed_offset:int64 committed_leader_epoch:int32=-1@5-
  metadata:string? error_code:error_code
OffsetFetchResponseGroup group_id:string topics:[OffsetFetchResponseTopics] error_code:error_code
OffsetFetchResponseTopics topic_id:uuid@10- name:string@-9 partitions:[OffsetFetchResponsePartitions]
OffsetFetchResponsePartitions partition_index:int32 committed_offset:int64 committed_leader_epoch:int32=-1
  metadata:string? error_code:error_code

api 10 find_coordinator 0-6
request 3
FindCoordinatorRequest key:string@-3 key_type:int8@1- coordinator_keys:[string]@4-
response 3
FindCoordinatorResponse throttle_time:timedelta_i32@1- coordinators:[Coordinator]@4-
  error_code:error_code@-3 error_message:string?@1-3 node_id:int32@-3 host:string@-3 port:int32@-3
Coordinator key:string node_id:int32 host:string port:int32 error_code:error_code error_message:string?

api 11 join_group 0-9
request 6
JoinGroupRequest group_id:string session_timeout:timedelta_i32 rebalance_timeout:timedelta_i32=-1@1-
  member_id:string group_instance_id:string?=null@5- protocol_type:string
  protocols:[JoinGroupRequestProtocol] reason:string?=null@8-
JoinGroupRequestProtocol name:string metadata:bytes
response 6
JoinGroupResponse throttle_time:timedelta_i32@2- error_code:error_code generation_id:int32=-1
  protocol_type:string?=null@7- protocol_name:string?@7- protocol_name:string@-6 leader:string
  skip_assignment:bool@9- member_id:string members:[JoinGroupResponseMember]
JoinGroupResponseMember member_id:string group_instance_id:string?=null@5- metadata:bytes

api 12 heartbeat 0-4
request 4
HeartbeatRequest group_id:string generation_id:int32 member_id:string group_instance_id:string?=null@3-
response 4
HeartbeatResponse throttle_time:timedelta_i32@1- error_code:error_code

api 13 leave_group 0-5
request 4
LeaveGroupRequest group_id:string members:[MemberIdentity]@3- member_id:string@-2
MemberIdentity member_id:string group_instance_id:string?=null reason:string?=null@5-
response 4
LeaveGroupResponse throttle_time:timedelta_i32@1- error_code:error_code members:[MemberResponse]@3-
MemberResponse member_id:string group_instance_id:string? error_code:error_code

api 14 sync_group 0-5
request 4
SyncGroupRequest group_id:string generation_id:int32 member_id:string group_instance_id:string?=null@3-
  protocol_type:string?=null@5- protocol_name:string?=null@5- assignments:[SyncGroupRequestAssignment]
SyncGroupRequestAssignment member_id:string assignment:bytes
response 4
SyncGroupResponse throttle_time:timedelta_i32@1- error_code:error_code protocol_type:string?=null@5-
  protocol_name:string?=null@5- assignment:bytes

api 15 describe_groups 0-6
request 5
DescribeGroupsRequest groups:[string] include_authorized_operations:bool@3-
response 5
DescribeGroupsResponse throttle_time:timedelta_i32@1- groups:[DescribedGroup]
DescribedGroup error_code:error_code error_message:string?=null@6- group_id:string group_state:string
  protocol_type:string protocol_data:string members:[DescribedGroupMember]
  authorized_operations:int32=-2147483648@3-
DescribedGroupMember member_id:string group_instance_id:string?=null@4- client_id:string client_host:string
  member_metadata:bytes member_assignment:bytes

api 16 list_groups 0-5
request 3
ListGroupsRequest states_filter:[string]@4- types_filter:[string]@5-
response 3
ListGroupsResponse throttle_time:timedelta_i32@1- error_code:error_code groups:[ListedGroup]
ListedGroup group_id:string protocol_type:string group_state:string@4- group_type:string@5-

api 17 sasl_handshake 0-1
request
SaslHandshakeRequest mechanism:string
response
SaslHandshakeResponse error_code:error_code mechanisms:[string]

api 18 api_versions 0-5
request 3
ApiVersionsRequest client_software_name:string@3- client_software_version:string@3-
  cluster_id:string?=null@5- node_id:int32=-1@5-
response 3
ApiVersionsResponse error_code:error_code api_keys:[ApiVersion] throttle_time:timedelta_i32@1-
  supported_features:[SupportedFeatureKey]#0@3- finalized_features_epoch:int64=-1#1@3-
  finalized_features:[FinalizedFeatureKey]#2@3- zk_migration_ready:bool#3@3-
ApiVersion api_key:int16 min_version:int16 max_version:int16
SupportedFeatureKey name:string min_version:int16 max_version:int16
FinalizedFeatureKey name:string max_version_level:int16 min_version_level:int16

api 19 create_topics 2-7
request 5
CreateTopicsRequest topics:[CreatableTopic] timeout:timedelta_i32=60000 validate_only:bool
CreatableTopic name:string num_partitions:int32 replication_factor:int16
  assignments:[CreatableReplicaAssignment] configs:[CreatableTopicConfig]
CreatableReplicaAssignment partition_index:int32 broker_ids:[int32]
CreatableTopicConfig name:string value:string?
response 5
CreateTopicsResponse throttle_time:timedelta_i32 topics:[CreatableTopicResult]
CreatableTopicResult name:string topic_id:uuid@7- error_code:error_code error_message:string?
  topic_config_error_code:error_code#0@5- num_partitions:int32=-1@5- replication_factor:int16=-1@5-
  configs:[CreatableTopicConfigs]?@5-
CreatableTopicConfigs name:string value:string? read_only:bool config_source:int8=-1 is_sensitive:bool

api 20 delete_topics 1-6
request 4
DeleteTopicsRequest topics:[DeleteTopicState]@6- topic_names:[string]@-5 timeout:timedelta_i32
DeleteTopicState name:string?=null topic_id:uuid
response 4
DeleteTopicsResponse throttle_time:timedelta_i32 responses:[DeletableTopicResult]
DeletableTopicResult name:string?@6- topic_id:uuid@6- name:string@-5 error_code:error_code
  error_message:string?=null@5-

api 21 delete_records 0-2
request 2
DeleteRecordsRequest topics:[DeleteRecordsTopic] timeout:timedelta_i32
DeleteRecordsTopic name:string partitions:[DeleteRecordsPartition]
DeleteRecordsPartition partition_index:int32 offset:int64
response 2
DeleteRecordsResponse throttle_time:timedelta_i32 topics:[DeleteRecordsTopicResult]
DeleteRecordsTopicResult name:string partitions:[DeleteRecordsPartitionResult]
DeleteRecordsPartitionResult partition_index:int32 low_watermark:int64 error_code:error_code

api 22 init_producer_id 0-6
request 2
InitProducerIdRequest transactional_id:string? transaction_timeout:timedelta_i32 producer_id:int64=-1@3-
  producer_epoch:int16=-1@3- enable2_pc:bool@6- keep_prepared_txn:bool@6-
response 2
InitProducerIdResponse throttle_time:timedelta_i32 error_code:error_code producer_id:int64=-1
  producer_epoch:int16 ongoing_txn_producer_id:int64=-1@6- ongoing_txn_producer_epoch:int16=-1@6-

api 23 offset_for_leader_epoch 2-4
request 4
OffsetForLeaderEpochRequest replica_id:int32=-2@3- topics:[OffsetForLeaderTopic]
OffsetForLeaderTopic topic:string partitions:[OffsetForLeaderPartition]
OffsetForLeaderPartition partition:int32 current_leader_epoch:int32=-1 leader_epoch:int32
response 4
OffsetForLeaderEpochResponse throttle_time:timedelta_i32 topics:[OffsetForLeaderTopicResult]
OffsetForLeaderTopicResult topic:string partitions:[EpochEndOffset]
EpochEndOffset error_code:error_code partition:int32 leader_epoch:int32=-1 end_offset:int64=-1

api 24 add_partitions_to_txn 0-5
request 3
AddPartitionsToTxnRequest transactions:[AddPartitionsToTxnTransaction]@4-
  v3_and_below_transactional_id:string@-3 v3_and_below_producer_id:int64@-3
  v3_and_below_producer_epoch:int16@-3 v3_and_below_topics:[AddPartitionsToTxnTopic]@-3
AddPartitionsToTxnTopic name:string partitions:[int32]
AddPartitionsToTxnTransaction transactional_id:string producer_id:int64 producer_epoch:int16
  verify_only:bool topics:[AddPartitionsToTxnTopic]
response 3
AddPartitionsToTxnResponse throttle_time:timedelta_i32 error_code:error_code@4-
  results_by_transaction:[AddPartitionsToTxnResult]@4-
  results_by_topic_v3_and_below:[AddPartitionsToTxnTopicResult]@-3
AddPartitionsToTxnTopicResult name:string results_by_partition:[AddPartitionsToTxnPartitionResult]
AddPartitionsToTxnPartitionResult partition_index:int32 partition_error_code:error_code
AddPartitionsToTxnResult transactional_id:string topic_results:[AddPartitionsToTxnTopicResult]

api 25 add_offsets_to_txn 0-4
request 3
AddOffsetsToTxnRequest transactional_id:string producer_id:int64 producer_epoch:int16 group_id:string
response 3
AddOffsetsToTxnResponse throttle_time:timedelta_i32 error_code:error_code

api 26 end_txn 0-5
request 3
EndTxnRequest transactional_id:string producer_id:int64 producer_epoch:int16 committed:bool
response 3
EndTxnResponse throttle_time:timedelta_i32 error_code:error_code producer_id:int64=-1@5-
  producer_epoch:int16=-1@5-

api 27 write_txn_markers 1-2
request 1
WriteTxnMarkersRequest markers:[WritableTxnMarker]
WritableTxnMarker producer_id:int64 producer_epoch:int16 transaction_result:bool
  topics:[WritableTxnMarkerTopic] coordinator_epoch:int32 transaction_version:int8@2-
WritableTxnMarkerTopic name:string partition_indexes:[int32]
response 1
WriteTxnMarkersResponse markers:[WritableTxnMarkerResult]
WritableTxnMarkerResult producer_id:int64 topics:[WritableTxnMarkerTopicResult]
WritableTxnMarkerTopicResult name:string partitions:[WritableTxnMarkerPartitionResult]
WritableTxnMarkerPartitionResult partition_index:int32 error_code:error_code

api 28 txn_offset_commit 0-6
request 3
TxnOffsetCommitRequest transactional_id:string group_id:string producer_id:int64 producer_epoch:int16
  generation_id_or_member_epoch:int32=-1@3- member_id:string@3- group_instance_id:string?=null@3-
  topics:[TxnOffsetCommitRequestTopic]
TxnOffsetCommitRequestTopic topic_id:uuid@6- name:string@-5 partitions:[TxnOffsetCommitRequestPartition]
TxnOffsetCommitRequestPartition partition_index:int32 committed_offset:int64
  committed_leader_epoch:int32=-1@2- committed_metadata:string?
response 3
TxnOffsetCommitResponse throttle_time:timedelta_i32 topics:[TxnOffsetCommitResponseTopic]
TxnOffsetCommitResponseTopic topic_id:uuid@6- name:string@-5 partitions:[TxnOffsetCommitResponsePartition]
TxnOffsetCommitResponsePartition partition_index:int32 error_code:error_code

api 29 describe_acls 1-3
request 2
DescribeAclsRequest resource_type_filter:int8 resource_name_filter:string? pattern_type_filter:int8=3
  principal_filter:string? host_filter:string? operation:int8 permission_type:int8
response 2
DescribeAclsResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?
  resources:[DescribeAclsResource]
DescribeAclsResource resource_type:int8 resource_name:string pattern_type:int8=3 acls:[AclDescription]
AclDescription principal:string host:string operation:int8 permission_type:int8

api 30 create_acls 1-3
request 2
CreateAclsRequest creations:[AclCreation]
AclCreation resource_type:int8 resource_name:string resource_pattern_type:int8=3 principal:string
  host:string operation:int8 permission_type:int8
response 2
CreateAclsResponse throttle_time:timedelta_i32 results:[AclCreationResult]
AclCreationResult error_code:error_code error_message:string?

api 31 delete_acls 1-3
request 2
DeleteAclsRequest filters:[DeleteAclsFilter]
DeleteAclsFilter resource_type_filter:int8 resource_name_filter:string? pattern_type_filter:int8=3
  principal_filter:string? host_filter:string? operation:int8 permission_type:int8
response 2
DeleteAclsResponse throttle_time:timedelta_i32 filter_results:[DeleteAclsFilterResult]
DeleteAclsFilterResult error_code:error_code error_message:string? matching_acls:[DeleteAclsMatchingAcl]
DeleteAclsMatchingAcl error_code:error_code error_message:string? resource_type:int8 resource_name:string
  pattern_type:int8=3 principal:string host:string operation:int8 permission_type:int8
"""
