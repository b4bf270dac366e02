"""The SASL server's state diagram, drawn from its transition table."""

from kustos.auth.sasl_table import SASL_SERVER_TRANSITIONS, SaslState


def sasl_server_diagram() -> str:
    """Return the diagram as Mermaid source, one arrow per transition; a note lists the closing ones."""
    lines = ["stateDiagram-v2", f"    [*] --> {SaslState.INITIAL.name}"]
    lines += [
        f"    {row.state.name} --> {row.target.name}: {row.event.value} / {row.action.value}"
        for row in SASL_SERVER_TRANSITIONS
    ]
    lines += [
        f"    {SaslState.FAILED.name} --> [*]",
        f"    note right of {SaslState.FAILED.name}: whatever has no arrow closes the connection",
    ]
    return "\n".join(lines) + "\n"
