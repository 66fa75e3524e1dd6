"""One team's turns as `bench.ledger` writes them."""

import asyncio
from uuid import UUID

from app.billing.services import reservation_hold, reservation_settle
from app.billing.types import Attempt, Buckets, Hold, Payer, Settlement
from app.common.db import run_db
from app.common.models import uuid7
from app.gate.settling import Booking, settler


class Turns:
    """Turns of one person in one team."""

    def __init__(self, team: str, account: str) -> None:
        self.payer = Payer(team_id=UUID(team), account_id=UUID(account))

    def hold(self) -> UUID:
        """Open one reservation."""
        item = Hold(
            reservation_id=uuid7(),
            payer=self.payer,
            kind="chat",
            price_key="bench",
            input_tokens=1000,
            output_tokens=500,
        )
        return reservation_hold(hold=item).reservation_id

    def alone(self, turns: int) -> None:
        """Hold and settle, one after the other, each by itself."""
        for _ in range(turns):
            reservation_settle(reservation_id=self.hold(), attempts=[ATTEMPT])

    async def grouped(self, writers: int, turns: int) -> None:
        """The same by coroutines of one process, as the web tier does it."""

        async def writer() -> None:
            for _ in range(turns):
                reservation = await run_db(self.hold)
                await settler().settle(Booking(Settlement(reservation, (ATTEMPT,))))

        await asyncio.gather(*(writer() for _ in range(writers)))


ATTEMPT = Attempt(
    number=1, outcome="completed", buckets=Buckets(input=1000, output=300), source="server", price_key="bench"
)
