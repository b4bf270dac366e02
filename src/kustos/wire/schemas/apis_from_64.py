"""APIs from 64 on; `scripts.generate_schemas` writes this."""

from typing import Final

TEXT: Final = """\
api 64 unregister_broker 0-0
request 0
UnregisterBrokerRequest broker_id:int32
response 0
UnregisterBrokerResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?

api 65 describe_transactions 0-0
request 0
DescribeTransactionsRequest transactional_ids:[string]
response 0
DescribeTransactionsResponse throttle_time:timedelta_i32 transaction_states:[TransactionState]
TransactionState error_code:error_code transactional_id:string transaction_state:string
  transaction_timeout:timedelta_i32 transaction_start_time:datetime_i64 producer_id:int64
  producer_epoch:int16 topics:[TopicData]
TopicData topic:string partitions:[int32]

api 66 list_transactions 0-2
request 0
ListTransactionsRequest state_filters:[string] producer_id_filters:[int64] duration_filter:int64=-1@1-
  transactional_id_pattern:string?=null@2-
response 0
ListTransactionsResponse throttle_time:timedelta_i32 error_code:error_code unknown_state_filters:[string]
  transaction_states:[TransactionState]
TransactionState transactional_id:string producer_id:int64 transaction_state:string

api 67 allocate_producer_ids 0-0
request 0
AllocateProducerIdsRequest broker_id:int32 broker_epoch:int64=-1
response 0
AllocateProducerIdsResponse throttle_time:timedelta_i32 error_code:error_code producer_id_start:int64
  producer_id_len:int32

api 68 consumer_group_heartbeat 0-1
request 0
ConsumerGroupHeartbeatRequest group_id:string member_id:string member_epoch:int32 instance_id:string?=null
  rack_id:string?=null rebalance_timeout:timedelta_i32=-1 subscribed_topic_names:[string]?=null
  subscribed_topic_regex:string?=null@1- server_assignor:string?=null
  topic_partitions:[TopicPartitions]?=null
TopicPartitions topic_id:uuid partitions:[int32]
response 0
ConsumerGroupHeartbeatResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?=null
  member_id:string?=null member_epoch:int32 heartbeat_interval:timedelta_i32 assignment:Assignment?=null
Assignment topic_partitions:[TopicPartitions]
TopicPartitions topic_id:uuid partitions:[int32]

api 69 consumer_group_describe 0-1
request 0
ConsumerGroupDescribeRequest group_ids:[string] include_authorized_operations:bool
response 0
ConsumerGroupDescribeResponse throttle_time:timedelta_i32 groups:[DescribedGroup]
DescribedGroup error_code:error_code error_message:string?=null group_id:string group_state:string
  group_epoch:int32 assignment_epoch:int32 assignor_name:string members:[Member]
  authorized_operations:int32=-2147483648
Member member_id:string instance_id:string?=null rack_id:string?=null member_epoch:int32 client_id:string
  client_host:string subscribed_topic_names:[string] subscribed_topic_regex:string?=null
  assignment:Assignment target_assignment:Assignment member_type:int8=-1@1-
Assignment topic_partitions:[TopicPartitions]
TopicPartitions topic_id:uuid topic_name:string partitions:[int32]

api 70 controller_registration 0-0
request 0
ControllerRegistrationRequest controller_id:int32 incarnation_id:uuid zk_migration_ready:bool
  listeners:[Listener] features:[Feature]
Listener name:string host:string port:uint16 security_protocol:int16
Feature name:string min_supported_version:int16 max_supported_version:int16
response 0
ControllerRegistrationResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?

api 71 get_telemetry_subscriptions 0-0
request 0
GetTelemetrySubscriptionsRequest client_instance_id:uuid
response 0
GetTelemetrySubscriptionsResponse throttle_time:timedelta_i32 error_code:error_code client_instance_id:uuid
  subscription_id:int32 accepted_compression_types:[int8] push_interval:timedelta_i32
  telemetry_max_bytes:int32 delta_temporality:bool requested_metrics:[string]

api 72 push_telemetry 0-0
request 0
PushTelemetryRequest client_instance_id:uuid subscription_id:int32 terminating:bool compression_type:int8
  metrics:bytes
response 0
PushTelemetryResponse throttle_time:timedelta_i32 error_code:error_code

api 73 assign_replicas_to_dirs 0-0
request 0
AssignReplicasToDirsRequest broker_id:int32 broker_epoch:int64=-1 directories:[DirectoryData]
DirectoryData id_:uuid topics:[TopicData]
TopicData topic_id:uuid partitions:[PartitionData]
PartitionData partition_index:int32
response 0
AssignReplicasToDirsResponse throttle_time:timedelta_i32 error_code:error_code directories:[DirectoryData]
DirectoryData id_:uuid topics:[TopicData]
TopicData topic_id:uuid partitions:[PartitionData]
PartitionData partition_index:int32 error_code:error_code

api 74 list_config_resources 0-1
request 0
ListConfigResourcesRequest resource_types:[int8]@1-
response 0
ListConfigResourcesResponse throttle_time:timedelta_i32 error_code:error_code
  config_resources:[ConfigResource]
ConfigResource resource_name:string resource_type:int8=16@1-

api 75 describe_topic_partitions 0-0
request 0
DescribeTopicPartitionsRequest topics:[TopicRequest] response_partition_limit:int32=2000 cursor:Cursor?=null
TopicRequest name:string
Cursor topic_name:string partition_index:int32
response 0
DescribeTopicPartitionsResponse throttle_time:timedelta_i32 topics:[DescribeTopicPartitionsResponseTopic]
  next_cursor:Cursor?=null
DescribeTopicPartitionsResponseTopic error_code:error_code name:string? topic_id:uuid is_internal:bool
  partitions:[DescribeTopicPartitionsResponsePartition] topic_authorized_operations:int32=-2147483648
DescribeTopicPartitionsResponsePartition error_code:error_code partition_index:int32 leader_id:int32
  leader_epoch:int32=-1 replica_nodes:[int32] isr_nodes:[int32] eligible_leader_replicas:[int32]?=null
  last_known_elr:[int32]?=null offline_replicas:[int32]
Cursor topic_name:string partition_index:int32

api 76 share_group_heartbeat 1-1
request 1
ShareGroupHeartbeatRequest group_id:string member_id:string member_epoch:int32 rack_id:string?=null
  subscribed_topic_names:[string]?=null
response 1
ShareGroupHeartbeatResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?=null
  member_id:string?=null member_epoch:int32 heartbeat_interval:timedelta_i32 assignment:Assignment?=null
Assignment topic_partitions:[TopicPartitions]
TopicPartitions topic_id:uuid partitions:[int32]

api 77 share_group_describe 1-1
request 1
ShareGroupDescribeRequest group_ids:[string] include_authorized_operations:bool
response 1
ShareGroupDescribeResponse throttle_time:timedelta_i32 groups:[DescribedGroup]
DescribedGroup error_code:error_code error_message:string?=null group_id:string group_state:string
  group_epoch:int32 assignment_epoch:int32 assignor_name:string members:[Member]
  authorized_operations:int32=-2147483648
Member member_id:string rack_id:string?=null member_epoch:int32 client_id:string client_host:string
  subscribed_topic_names:[string] assignment:Assignment
Assignment topic_partitions:[TopicPartitions]
TopicPartitions topic_id:uuid topic_name:string partitions:[int32]

api 78 share_fetch 1-2
request 1
ShareFetchRequest group_id:string?=null member_id:string? share_session_epoch:int32 max_wait:timedelta_i32
  min_bytes:int32 max_bytes:int32=2147483647 max_records:int32 batch_size:int32 share_acquire_mode:int8@2-
  is_renew_ack:bool@2- topics:[FetchTopic] forgotten_topics_data:[ForgottenTopic]
FetchTopic topic_id:uuid partitions:[FetchPartition]
FetchPartition partition_index:int32 acknowledgement_batches:[AcknowledgementBatch]
AcknowledgementBatch first_offset:int64 last_offset:int64 acknowledge_types:[int8]
ForgottenTopic topic_id:uuid partitions:[int32]
response 1
ShareFetchResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?=null
  acquisition_lock_timeout:timedelta_i32 responses:[ShareFetchableTopicResponse]
  node_endpoints:[NodeEndpoint]
ShareFetchableTopicResponse topic_id:uuid partitions:[PartitionData]
PartitionData partition_index:int32 error_code:error_code error_message:string?=null
  acknowledge_error_code:error_code acknowledge_error_message:string?=null current_leader:LeaderIdAndEpoch
  records:records acquired_records:[AcquiredRecords]
LeaderIdAndEpoch leader_id:int32 leader_epoch:int32
AcquiredRecords first_offset:int64 last_offset:int64 delivery_count:int16
NodeEndpoint node_id:int32 host:string port:int32 rack:string?=null

api 79 share_acknowledge 1-2
request 1
ShareAcknowledgeRequest group_id:string?=null member_id:string? share_session_epoch:int32
  is_renew_ack:bool@2- topics:[AcknowledgeTopic]
AcknowledgeTopic topic_id:uuid partitions:[AcknowledgePartition]
AcknowledgePartition partition_index:int32 acknowledgement_batches:[AcknowledgementBatch]
AcknowledgementBatch first_offset:int64 last_offset:int64 acknowledge_types:[int8]
response 1
ShareAcknowledgeResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?=null
  acquisition_lock_timeout:timedelta_i32@2- responses:[ShareAcknowledgeTopicResponse]
  node_endpoints:[NodeEndpoint]
ShareAcknowledgeTopicResponse topic_id:uuid partitions:[PartitionData]
PartitionData partition_index:int32 error_code:error_code error_message:string?=null
  current_leader:LeaderIdAndEpoch
LeaderIdAndEpoch leader_id:int32 leader_epoch:int32
NodeEndpoint node_id:int32 host:string port:int32 rack:string?=null

api 80 add_raft_voter 0-1
request 0
AddRaftVoterRequest cluster_id:string? timeout:timedelta_i32 voter_id:int32 voter_directory_id:uuid
  listeners:[Listener] ack_when_committed:bool=true@1-
Listener name:string host:string port:uint16
response 0
AddRaftVoterResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?

api 81 remove_raft_voter 0-0
request 0
RemoveRaftVoterRequest cluster_id:string? voter_id:int32 voter_directory_id:uuid
response 0
RemoveRaftVoterResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?

api 82 update_raft_voter 0-0
request 0
UpdateRaftVoterRequest cluster_id:string? current_leader_epoch:int32 voter_id:int32 voter_directory_id:uuid
  listeners:[Listener] k_raft_version_feature:KRaftVersionFeature
Listener name:string host:string port:uint16
KRaftVersionFeature min_supported_version:int16 max_supported_version:int16
response 0
UpdateRaftVoterResponse throttle_time:timedelta_i32 error_code:error_code current_leader:CurrentLeader#0
CurrentLeader leader_id:int32=-1 leader_epoch:int32=-1 host:string port:int32

api 83 initialize_share_group_state 0-0
request 0
InitializeShareGroupStateRequest group_id:string topics:[InitializeStateData]
InitializeStateData topic_id:uuid partitions:[PartitionData]
PartitionData partition:int32 state_epoch:int32 start_offset:int64
response 0
InitializeShareGroupStateResponse results:[InitializeStateResult]
InitializeStateResult topic_id:uuid partitions:[PartitionResult]
PartitionResult partition:int32 error_code:error_code error_message:string?=null

api 84 read_share_group_state 0-0
request 0
ReadShareGroupStateRequest group_id:string topics:[ReadStateData]
ReadStateData topic_id:uuid partitions:[PartitionData]
PartitionData partition:int32 leader_epoch:int32
response 0
ReadShareGroupStateResponse results:[ReadStateResult]
ReadStateResult topic_id:uuid partitions:[PartitionResult]
PartitionResult partition:int32 error_code:error_code error_message:string?=null state_epoch:int32
  start_offset:int64 state_batches:[StateBatch]
StateBatch first_offset:int64 last_offset:int64 delivery_state:int8 delivery_count:int16

api 85 write_share_group_state 0-1
request 0
WriteShareGroupStateRequest group_id:string topics:[WriteStateData]
WriteStateData topic_id:uuid partitions:[PartitionData]
PartitionData partition:int32 state_epoch:int32 leader_epoch:int32 start_offset:int64
  delivery_complete_count:int32=-1@1- state_batches:[StateBatch]
StateBatch first_offset:int64 last_offset:int64 delivery_state:int8 delivery_count:int16
response 0
WriteShareGroupStateResponse results:[WriteStateResult]
WriteStateResult topic_id:uuid partitions:[PartitionResult]
PartitionResult partition:int32 error_code:error_code error_message:string?=null

api 86 delete_share_group_state 0-0
request 0
DeleteShareGroupStateRequest group_id:string topics:[DeleteStateData]
DeleteStateData topic_id:uuid partitions:[PartitionData]
PartitionData partition:int32
response 0
DeleteShareGroupStateResponse results:[DeleteStateResult]
DeleteStateResult topic_id:uuid partitions:[PartitionResult]
PartitionResult partition:int32 error_code:error_code error_message:string?=null

api 87 read_share_group_state_summary 0-1
request 0
ReadShareGroupStateSummaryRequest group_id:string topics:[ReadStateSummaryData]
ReadStateSummaryData topic_id:uuid partitions:[PartitionData]
PartitionData partition:int32 leader_epoch:int32
response 0
ReadShareGroupStateSummaryResponse results:[ReadStateSummaryResult]
ReadStateSummaryResult topic_id:uuid partitions:[PartitionResult]
PartitionResult partition:int32 error_code:error_code error_message:string?=null state_epoch:int32
  leader_epoch:int32 start_offset:int64 delivery_complete_count:int32=-1@1-

api 88 streams_group_heartbeat 0-1
request 0
StreamsGroupHeartbeatRequest group_id:string member_id:string member_epoch:int32
  endpoint_information_epoch:int32 instance_id:string?=null rack_id:string?=null
  rebalance_timeout:timedelta_i32=-1 topology:Topology?=null active_tasks:[TaskIds]?=null
  standby_tasks:[TaskIds]?=null warmup_tasks:[TaskIds]?=null process_id:string?=null
  user_endpoint:Endpoint?=null client_tags:[KeyValue]?=null task_offsets:[TaskOffset]?=null
  task_end_offsets:[TaskOffset]?=null shutdown_application:bool
Topology epoch:int32 subtopologies:[Subtopology]
Subtopology subtopology_id:string source_topics:[string] source_topic_regex:[string]
  state_changelog_topics:[TopicInfo] repartition_sink_topics:[string] repartition_source_topics:[TopicInfo]
  copartition_groups:[CopartitionGroup]
TopicInfo name:string partitions:int32 replication_factor:int16 topic_configs:[KeyValue]
KeyValue key:string value:string
CopartitionGroup source_topics:[int16] source_topic_regex:[int16] repartition_source_topics:[int16]
TaskIds subtopology_id:string partitions:[int32]
Endpoint host:string port:uint16
TaskOffset subtopology_id:string partition:int32 offset:int64
response 0
StreamsGroupHeartbeatResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?=null
  member_id:string member_epoch:int32 heartbeat_interval:timedelta_i32
  acceptable_recovery_lag_legacy:int32@-0 task_offset_interval:timedelta_i32
  acceptable_recovery_lag:int64=-1@1- status:[Status]? active_tasks:[TaskIds]?=null
  standby_tasks:[TaskIds]?=null warmup_tasks:[TaskIds]?=null topology_description_required:bool@1-
  endpoint_information_epoch:int32 partitions_by_user_endpoint:[EndpointToPartitions]?=null
Status status_code:int8 status_detail:string
TaskIds subtopology_id:string partitions:[int32]
EndpointToPartitions user_endpoint:Endpoint active_partitions:[TopicPartition]
  standby_partitions:[TopicPartition]
Endpoint host:string port:uint16
TopicPartition topic:string partitions:[int32]

api 89 streams_group_describe 0-1
request 0
StreamsGroupDescribeRequest group_ids:[string] include_authorized_operations:bool
  include_topology_description:bool@1-
response 0
StreamsGroupDescribeResponse throttle_time:timedelta_i32 groups:[DescribedGroup]
DescribedGroup error_code:error_code error_message:string?=null group_id:string group_state:string
  group_epoch:int32 assignment_epoch:int32 topology:Topology?=null members:[Member]
  authorized_operations:int32=-2147483648 topology_description:TopologyDescription?=null@1-
  topology_description_status:int8@1- assignor_name:string?=null@1-
Topology epoch:int32 subtopologies:[Subtopology]?=null
Subtopology subtopology_id:string source_topics:[string] repartition_sink_topics:[string]
  state_changelog_topics:[TopicInfo] repartition_source_topics:[TopicInfo]
TopicInfo name:string partitions:int32 replication_factor:int16 topic_configs:[KeyValue]
KeyValue key:string value:string
Member member_id:string member_epoch:int32 instance_id:string?=null rack_id:string?=null client_id:string
  client_host:string topology_epoch:int32 process_id:string user_endpoint:Endpoint?=null
  client_tags:[KeyValue] task_offsets:[TaskOffset] task_end_offsets:[TaskOffset] assignment:Assignment
  target_assignment:Assignment is_classic:bool
Endpoint host:string port:uint16
TaskOffset subtopology_id:string partition:int32 offset:int64
Assignment active_tasks:[TaskIds] standby_tasks:[TaskIds] warmup_tasks:[TaskIds]
TaskIds subtopology_id:string partitions:[int32]
TopologyDescription subtopologies:[TopologyDescriptionSubtopology]
  global_stores:[TopologyDescriptionGlobalStore]
TopologyDescriptionSubtopology subtopology_id:string nodes:[TopologyDescriptionNode]
TopologyDescriptionNode name:string node_type:int8 source_topics:[string] sink_topic:string?=null
  stores:[string] successors:[string]
TopologyDescriptionGlobalStore source:TopologyDescriptionNode processor:TopologyDescriptionNode

api 90 describe_share_group_offsets 0-1
request 0
DescribeShareGroupOffsetsRequest groups:[DescribeShareGroupOffsetsRequestGroup]
DescribeShareGroupOffsetsRequestGroup group_id:string topics:[DescribeShareGroupOffsetsRequestTopic]?
DescribeShareGroupOffsetsRequestTopic topic_name:string partitions:[int32]
response 0
DescribeShareGroupOffsetsResponse throttle_time:timedelta_i32
  groups:[DescribeShareGroupOffsetsResponseGroup]
DescribeShareGroupOffsetsResponseGroup group_id:string topics:[DescribeShareGroupOffsetsResponseTopic]
  error_code:error_code error_message:string?=null
DescribeShareGroupOffsetsResponseTopic topic_name:string topic_id:uuid
  partitions:[DescribeShareGroupOffsetsResponsePartition]
DescribeShareGroupOffsetsResponsePartition partition_index:int32 start_offset:int64 leader_epoch:int32
  lag:int64=-1@1- error_code:error_code error_message:string?=null

api 91 alter_share_group_offsets 0-0
request 0
AlterShareGroupOffsetsRequest group_id:string topics:[AlterShareGroupOffsetsRequestTopic]
AlterShareGroupOffsetsRequestTopic topic_name:string partitions:[AlterShareGroupOffsetsRequestPartition]
AlterShareGroupOffsetsRequestPartition partition_index:int32 start_offset:int64
response 0
AlterShareGroupOffsetsResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?=null
  responses:[AlterShareGroupOffsetsResponseTopic]
AlterShareGroupOffsetsResponseTopic topic_name:string topic_id:uuid
  partitions:[AlterShareGroupOffsetsResponsePartition]
AlterShareGroupOffsetsResponsePartition partition_index:int32 error_code:error_code
  error_message:string?=null

api 92 delete_share_group_offsets 0-0
request 0
DeleteShareGroupOffsetsRequest group_id:string topics:[DeleteShareGroupOffsetsRequestTopic]
DeleteShareGroupOffsetsRequestTopic topic_name:string
response 0
DeleteShareGroupOffsetsResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?=null
  responses:[DeleteShareGroupOffsetsResponseTopic]
DeleteShareGroupOffsetsResponseTopic topic_name:string topic_id:uuid error_code:error_code
  error_message:string?=null

api 93 streams_group_topology_description_update 0-0
request 0
StreamsGroupTopologyDescriptionUpdateRequest group_id:string member_id:string topology_epoch:int32
  topology_description:TopologyDescription
TopologyDescription subtopologies:[TopologyDescriptionSubtopology]
  global_stores:[TopologyDescriptionGlobalStore]
TopologyDescriptionSubtopology subtopology_id:string nodes:[TopologyDescriptionNode]
TopologyDescriptionNode name:string node_type:int8 source_topics:[string] sink_topic:string?=null
  stores:[string] successors:[string]
TopologyDescriptionGlobalStore source:TopologyDescriptionNode processor:TopologyDescriptionNode
response 0
StreamsGroupTopologyDescriptionUpdateResponse throttle_time:timedelta_i32 error_code:error_code
  error_message:string?=null

api 94 unregister_controller 0-0
request 0
UnregisterControllerRequest controller_id:int32
response 0
UnregisterControllerResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?
"""
