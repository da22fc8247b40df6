"""A tool with a gate."""

from tests.scenarios.tools import play


def refund(amount: int, to: str = "ada") -> str:
    return f"refunded {amount} to {to}"


if __name__ == "__main__":
    play(refund, requires_approval=lambda amount: amount > 10, approval_redact_keys=["to"])
