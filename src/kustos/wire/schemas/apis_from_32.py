"""APIs from 32 on; `scripts.generate_schemas` writes this."""

from typing import Final

TEXT: Final = """\
api 32 describe_configs 1-4
request 4
DescribeConfigsRequest resources:[DescribeConfigsResource] include_synonyms:bool
  include_documentation:bool@3-
DescribeConfigsResource resource_type:int8 resource_name:string configuration_keys:[string]?
response 4
DescribeConfigsResponse throttle_time:timedelta_i32 results:[DescribeConfigsResult]
DescribeConfigsResult error_code:error_code error_message:string? resource_type:int8 resource_name:string
  configs:[DescribeConfigsResourceResult]
DescribeConfigsResourceResult name:string value:string? read_only:bool config_source:int8=-1
  is_sensitive:bool synonyms:[DescribeConfigsSynonym] config_type:int8@3- documentation:string?@3-
DescribeConfigsSynonym name:string value:string? source:int8

api 33 alter_configs 0-2
request 2
AlterConfigsRequest resources:[AlterConfigsResource] validate_only:bool
AlterConfigsResource resource_type:int8 resource_name:string configs:[AlterableConfig]
AlterableConfig name:string value:string?
response 2
AlterConfigsResponse throttle_time:timedelta_i32 responses:[AlterConfigsResourceResponse]
AlterConfigsResourceResponse error_code:error_code error_message:string? resource_type:int8
  resource_name:string

api 34 alter_replica_log_dirs 1-2
request 2
AlterReplicaLogDirsRequest dirs:[AlterReplicaLogDir]
AlterReplicaLogDir path:string topics:[AlterReplicaLogDirTopic]
AlterReplicaLogDirTopic name:string partitions:[int32]
response 2
AlterReplicaLogDirsResponse throttle_time:timedelta_i32 results:[AlterReplicaLogDirTopicResult]
AlterReplicaLogDirTopicResult topic_name:string partitions:[AlterReplicaLogDirPartitionResult]
AlterReplicaLogDirPartitionResult partition_index:int32 error_code:error_code

api 35 describe_log_dirs 1-5
request 2
DescribeLogDirsRequest topics:[DescribableLogDirTopic]?
DescribableLogDirTopic topic:string partitions:[int32]
response 2
DescribeLogDirsResponse throttle_time:timedelta_i32 error_code:error_code@3- results:[DescribeLogDirsResult]
DescribeLogDirsResult error_code:error_code log_dir:string topics:[DescribeLogDirsTopic]
  total_bytes:int64=-1@4- usable_bytes:int64=-1@4- is_cordoned:bool@5-
DescribeLogDirsTopic name:string partitions:[DescribeLogDirsPartition]
DescribeLogDirsPartition partition_index:int32 partition_size:int64 offset_lag:int64 is_future_key:bool

api 36 sasl_authenticate 0-2
request 2
SaslAuthenticateRequest auth_bytes:bytes
response 2
SaslAuthenticateResponse error_code:error_code error_message:string? auth_bytes:bytes
  session_lifetime:timedelta_i64@1-

api 37 create_partitions 0-3
request 2
CreatePartitionsRequest topics:[CreatePartitionsTopic] timeout:timedelta_i32 validate_only:bool
CreatePartitionsTopic name:string count:int32 assignments:[CreatePartitionsAssignment]?
CreatePartitionsAssignment broker_ids:[int32]
response 2
CreatePartitionsResponse throttle_time:timedelta_i32 results:[CreatePartitionsTopicResult]
CreatePartitionsTopicResult name:string error_code:error_code error_message:string?=null

api 38 create_delegation_token 1-3
request 2
CreateDelegationTokenRequest owner_principal_type:string?@3- owner_principal_name:string?@3-
  renewers:[CreatableRenewers] max_lifetime:timedelta_i64
CreatableRenewers principal_type:string principal_name:string
response 2
CreateDelegationTokenResponse error_code:error_code principal_type:string principal_name:string
  token_requester_principal_type:string@3- token_requester_principal_name:string@3-
  issue_timestamp:datetime_i64 expiry_timestamp:datetime_i64 max_timestamp:datetime_i64 token_id:string
  hmac:bytes throttle_time:timedelta_i32

api 39 renew_delegation_token 1-2
request 2
RenewDelegationTokenRequest hmac:bytes renew_period:timedelta_i64
response 2
RenewDelegationTokenResponse error_code:error_code expiry_timestamp:datetime_i64 throttle_time:timedelta_i32

api 40 expire_delegation_token 1-2
request 2
ExpireDelegationTokenRequest hmac:bytes expiry_time_period:timedelta_i64
response 2
ExpireDelegationTokenResponse error_code:error_code expiry_timestamp:datetime_i64
  throttle_time:timedelta_i32

api 41 describe_delegation_token 1-3
request 2
DescribeDelegationTokenRequest owners:[DescribeDelegationTokenOwner]?
DescribeDelegationTokenOwner principal_type:string principal_name:string
response 2
DescribeDelegationTokenResponse error_code:error_code tokens:[DescribedDelegationToken]
  throttle_time:timedelta_i32
DescribedDelegationToken principal_type:string principal_name:string
  token_requester_principal_type:string@3- token_requester_principal_name:string@3- issue_timestamp:int64
  expiry_timestamp:int64 max_timestamp:int64 token_id:string hmac:bytes
  renewers:[DescribedDelegationTokenRenewer]
DescribedDelegationTokenRenewer principal_type:string principal_name:string

api 42 delete_groups 0-3
request 2
DeleteGroupsRequest groups_names:[string]
response 2
DeleteGroupsResponse throttle_time:timedelta_i32 results:[DeletableGroupResult]
DeletableGroupResult group_id:string error_code:error_code error_message:string?=null@3-

api 43 elect_leaders 0-2
request 2
ElectLeadersRequest election_type:int8@1- topic_partitions:[TopicPartitions]? timeout:timedelta_i32=60000
TopicPartitions topic:string partitions:[int32]
response 2
ElectLeadersResponse throttle_time:timedelta_i32 error_code:error_code@1-
  replica_election_results:[ReplicaElectionResult]
ReplicaElectionResult topic:string partition_result:[PartitionResult]
PartitionResult partition_id:int32 error_code:error_code error_message:string?

api 44 incremental_alter_configs 0-1
request 1
IncrementalAlterConfigsRequest resources:[AlterConfigsResource] validate_only:bool
AlterConfigsResource resource_type:int8 resource_name:string configs:[AlterableConfig]
AlterableConfig name:string config_operation:int8 value:string?
response 1
IncrementalAlterConfigsResponse throttle_time:timedelta_i32 responses:[AlterConfigsResourceResponse]
AlterConfigsResourceResponse error_code:error_code error_message:string? resource_type:int8
  resource_name:string

api 45 alter_partition_reassignments 0-1
request 0
AlterPartitionReassignmentsRequest timeout:timedelta_i32=60000 allow_replication_factor_change:bool=true@1-
  topics:[ReassignableTopic]
ReassignableTopic name:string partitions:[ReassignablePartition]
ReassignablePartition partition_index:int32 replicas:[int32]?=null
response 0
AlterPartitionReassignmentsResponse throttle_time:timedelta_i32 allow_replication_factor_change:bool=true@1-
  error_code:error_code error_message:string? responses:[ReassignableTopicResponse]
ReassignableTopicResponse name:string partitions:[ReassignablePartitionResponse]
ReassignablePartitionResponse partition_index:int32 error_code:error_code error_message:string?

api 46 list_partition_reassignments 0-0
request 0
ListPartitionReassignmentsRequest timeout:timedelta_i32=60000
  topics:[ListPartitionReassignmentsTopics]?=null
ListPartitionReassignmentsTopics name:string partition_indexes:[int32]
response 0
ListPartitionReassignmentsResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?
  topics:[OngoingTopicReassignment]
OngoingTopicReassignment name:string partitions:[OngoingPartitionReassignment]
OngoingPartitionReassignment partition_index:int32 replicas:[int32] adding_replicas:[int32]
  removing_replicas:[int32]

api 47 offset_delete 0-0
request
OffsetDeleteRequest group_id:string topics:[OffsetDeleteRequestTopic]
OffsetDeleteRequestTopic name:string partitions:[OffsetDeleteRequestPartition]
OffsetDeleteRequestPartition partition_index:int32
response
OffsetDeleteResponse error_code:error_code throttle_time:timedelta_i32 topics:[OffsetDeleteResponseTopic]
OffsetDeleteResponseTopic name:string partitions:[OffsetDeleteResponsePartition]
OffsetDeleteResponsePartition partition_index:int32 error_code:error_code

api 48 describe_client_quotas 0-1
request 1
DescribeClientQuotasRequest components:[ComponentData] strict:bool
ComponentData entity_type:string match_type:int8 match:string?
response 1
DescribeClientQuotasResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?
  entries:[EntryData]?
EntryData entity:[EntityData] values:[ValueData]
EntityData entity_type:string entity_name:string?
ValueData key:string value:float64

api 49 alter_client_quotas 0-1
request 1
AlterClientQuotasRequest entries:[EntryData] validate_only:bool
EntryData entity:[EntityData] ops:[OpData]
EntityData entity_type:string entity_name:string?
OpData key:string value:float64 remove:bool
response 1
AlterClientQuotasResponse throttle_time:timedelta_i32 entries:[EntryData]
EntryData error_code:error_code error_message:string? entity:[EntityData]
EntityData entity_type:string entity_name:string?

api 50 describe_user_scram_credentials 0-0
request 0
DescribeUserScramCredentialsRequest users:[UserName]?
UserName name:string
response 0
DescribeUserScramCredentialsResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?
  results:[DescribeUserScramCredentialsResult]
DescribeUserScramCredentialsResult user:string error_code:error_code error_message:string?
  credential_infos:[CredentialInfo]
CredentialInfo mechanism:int8 iterations:int32

api 51 alter_user_scram_credentials 0-0
request 0
AlterUserScramCredentialsRequest deletions:[ScramCredentialDeletion] upsertions:[ScramCredentialUpsertion]
ScramCredentialDeletion name:string mechanism:int8
ScramCredentialUpsertion name:string mechanism:int8 iterations:int32 salt:bytes salted_password:bytes
response 0
AlterUserScramCredentialsResponse throttle_time:timedelta_i32 results:[AlterUserScramCredentialsResult]
AlterUserScramCredentialsResult user:string error_code:error_code error_message:string?

api 52 vote 0-2
request 0
VoteRequest cluster_id:string?=null voter_id:int32=-1@1- topics:[TopicData]
TopicData topic_name:string partitions:[PartitionData]
PartitionData partition_index:int32 replica_epoch:int32 replica_id:int32 replica_directory_id:uuid@1-
  voter_directory_id:uuid@1- last_offset_epoch:int32 last_offset:int64 pre_vote:bool@2-
response 0
VoteResponse error_code:error_code topics:[TopicData] node_endpoints:[NodeEndpoint]#0@1-
TopicData topic_name:string partitions:[PartitionData]
PartitionData partition_index:int32 error_code:error_code leader_id:int32 leader_epoch:int32
  vote_granted:bool
NodeEndpoint node_id:int32 host:string port:uint16

api 53 begin_quorum_epoch 0-1
request 1
BeginQuorumEpochRequest cluster_id:string?=null voter_id:int32=-1@1- topics:[TopicData]
  leader_endpoints:[LeaderEndpoint]@1-
TopicData topic_name:string partitions:[PartitionData]
PartitionData partition_index:int32 voter_directory_id:uuid@1- leader_id:int32 leader_epoch:int32
LeaderEndpoint name:string host:string port:uint16
response 1
BeginQuorumEpochResponse error_code:error_code topics:[TopicData] node_endpoints:[NodeEndpoint]#0@1-
TopicData topic_name:string partitions:[PartitionData]
PartitionData partition_index:int32 error_code:error_code leader_id:int32 leader_epoch:int32
NodeEndpoint node_id:int32 host:string port:uint16

api 54 end_quorum_epoch 0-1
request 1
EndQuorumEpochRequest cluster_id:string?=null topics:[TopicData] leader_endpoints:[LeaderEndpoint]@1-
TopicData topic_name:string partitions:[PartitionData]
PartitionData partition_index:int32 leader_id:int32 leader_epoch:int32 preferred_candidates:[ReplicaInfo]@1-
  preferred_successors:[int32]@-0
ReplicaInfo candidate_id:int32 candidate_directory_id:uuid
LeaderEndpoint name:string host:string port:uint16
response 1
EndQuorumEpochResponse error_code:error_code topics:[TopicData] node_endpoints:[NodeEndpoint]#0@1-
TopicData topic_name:string partitions:[PartitionData]
PartitionData partition_index:int32 error_code:error_code leader_id:int32 leader_epoch:int32
NodeEndpoint node_id:int32 host:string port:uint16

api 55 describe_quorum 0-2
request 0
DescribeQuorumRequest topics:[TopicData]
TopicData topic_name:string partitions:[PartitionData]
PartitionData partition_index:int32
response 0
DescribeQuorumResponse error_code:error_code error_message:string?@2- topics:[TopicData] nodes:[Node]@2-
TopicData topic_name:string partitions:[PartitionData]
PartitionData partition_index:int32 error_code:error_code error_message:string?@2- leader_id:int32
  leader_epoch:int32 high_watermark:int64 current_voters:[ReplicaState] observers:[ReplicaState]
ReplicaState replica_id:int32 replica_directory_id:uuid@2- log_end_offset:int64
  last_fetch_timestamp:int64=-1@1- last_caught_up_timestamp:int64=-1@1-
Node node_id:int32 listeners:[Listener]
Listener name:string host:string port:uint16

api 56 alter_partition 2-3
request 2
AlterPartitionRequest broker_id:int32 broker_epoch:int64=-1 topics:[TopicData]
TopicData topic_id:uuid partitions:[PartitionData]
PartitionData partition_index:int32 leader_epoch:int32 new_isr_with_epochs:[BrokerState]@3-
  new_isr:[int32]@-2 leader_recovery_state:int8 partition_epoch:int32
BrokerState broker_id:int32 broker_epoch:int64=-1
response 2
AlterPartitionResponse throttle_time:timedelta_i32 error_code:error_code topics:[TopicData]
TopicData topic_id:uuid partitions:[PartitionData]
PartitionData partition_index:int32 error_code:error_code leader_id:int32 leader_epoch:int32 isr:[int32]
  leader_recovery_state:int8 partition_epoch:int32

api 57 update_features 0-2
request 0
UpdateFeaturesRequest timeout:timedelta_i32=60000 feature_updates:[FeatureUpdateKey] validate_only:bool@1-
FeatureUpdateKey feature:string max_version_level:int16 upgrade_type:int8=1@1- allow_downgrade:bool@-0
response 0
UpdateFeaturesResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?
  results:[UpdatableFeatureResult]@-1
UpdatableFeatureResult feature:string error_code:error_code error_message:string?

api 58 envelope 0-0
request 0
EnvelopeRequest request_data:bytes request_principal:bytes? client_host_address:bytes
response 0
EnvelopeResponse response_data:bytes?=null error_code:error_code

api 59 fetch_snapshot 0-1
request 0
FetchSnapshotRequest cluster_id:string?=null#0 replica_id:int32=-1 max_bytes:int32=2147483647
  topics:[TopicSnapshot]
TopicSnapshot name:string partitions:[PartitionSnapshot]
PartitionSnapshot partition:int32 current_leader_epoch:int32 snapshot_id:SnapshotId position:int64
  replica_directory_id:uuid#0@1-
SnapshotId end_offset:int64 epoch:int32
response 0
FetchSnapshotResponse throttle_time:timedelta_i32 error_code:error_code topics:[TopicSnapshot]
  node_endpoints:[NodeEndpoint]#0@1-
TopicSnapshot name:string partitions:[PartitionSnapshot]
PartitionSnapshot index:int32 error_code:error_code snapshot_id:SnapshotId current_leader:LeaderIdAndEpoch#0
  size:int64 position:int64 unaligned_records:records
SnapshotId end_offset:int64 epoch:int32
LeaderIdAndEpoch leader_id:int32 leader_epoch:int32
NodeEndpoint node_id:int32 host:string port:uint16

api 60 describe_cluster 0-2
request 0
DescribeClusterRequest include_cluster_authorized_operations:bool endpoint_type:int8=1@1-
  include_fenced_brokers:bool@2-
response 0
DescribeClusterResponse throttle_time:timedelta_i32 error_code:error_code error_message:string?=null
  endpoint_type:int8=1@1- cluster_id:string controller_id:int32=-1 brokers:[DescribeClusterBroker]
  cluster_authorized_operations:int32=-2147483648
DescribeClusterBroker broker_id:int32 host:string port:int32 rack:string?=null is_fenced:bool@2-

api 61 describe_producers 0-0
request 0
DescribeProducersRequest topics:[TopicRequest]
TopicRequest name:string partition_indexes:[int32]
response 0
DescribeProducersResponse throttle_time:timedelta_i32 topics:[TopicResponse]
TopicResponse name:string partitions:[PartitionResponse]
PartitionResponse partition_index:int32 error_code:error_code error_message:string?=null
  active_producers:[ProducerState]
ProducerState producer_id:int64 producer_epoch:int32 last_sequence:int32=-1 last_timestamp:int64=-1
  coordinator_epoch:int32 current_txn_start_offset:int64=-1

api 62 broker_registration 0-4
request 0
BrokerRegistrationRequest broker_id:int32 cluster_id:string incarnation_id:uuid listeners:[Listener]
  features:[Feature] rack:string? is_migrating_zk_broker:bool@1- log_dirs:[uuid]@2-
  previous_broker_epoch:int64=-1@3-
Listener name:string host:string port:uint16 security_protocol:int16
Feature name:string min_supported_version:int16 max_supported_version:int16
response 0
BrokerRegistrationResponse throttle_time:timedelta_i32 error_code:error_code broker_epoch:int64=-1

api 63 broker_heartbeat 0-2
request 0
BrokerHeartbeatRequest broker_id:int32 broker_epoch:int64=-1 current_metadata_offset:int64 want_fence:bool
  want_shut_down:bool offline_log_dirs:[uuid]#0@1- cordoned_log_dirs:[uuid]?=null#1@2-
response 0
BrokerHeartbeatResponse throttle_time:timedelta_i32 error_code:error_code is_caught_up:bool
  is_fenced:bool=true should_shut_down:bool
"""
