"""What Kafka answers, in each client's own words."""

from typing import Final

JAVA_DENIED: Final = "TopicAuthorizationException"
PYTHON_DENIED: Final = "TopicAuthorizationFailedError"
LIBRDKAFKA_DENIED: Final = "TOPIC_AUTHORIZATION_FAILED"
BAD_LOGIN: Final = (
    "SaslAuthenticationException: Authentication failed during authentication due to invalid credentials "
    "with SASL mechanism SCRAM-SHA-256"
)
