"""A real application: a database, users with tokens, an agent whose tools read and write the database, and an endpoint
that drives a second agent. `SHOP_DATABASE=sqlite:///shop.sqlite3 uvicorn examples.fastapi_app.shop:app`
"""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from acp_fastapi import AcpFastAPI, ClientDep
from acp_integration import AcpClientSettings, SyncPromptContext, acp_agent, on

ROOT = Path(__file__).resolve().parents[2]


class Base(DeclarativeBase):
    """The tables."""


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    token: Mapped[str] = mapped_column(unique=True)


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    engine = create_engine(os.environ.get("SHOP_DATABASE", "sqlite:///shop.sqlite3"))
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        if session.scalar(select(User)) is None:
            session.add_all(User(name=name, token=f"{name}-token") for name in ("ada", "bob"))
    yield {"engine": engine}
    engine.dispose()


def database(request: Request) -> Iterator[Session]:
    """One transaction: kept if all went well, undone by an error or a cancel."""
    with Session(request.state.engine, expire_on_commit=False) as session, session.begin():
        yield session


Database = Annotated[Session, Depends(database)]


def current_user(db: Database, given: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> User:
    user = db.scalar(select(User).where(User.token == given.credentials))
    if user is None:
        raise HTTPException(401)
    return user


def local_user(db: Database) -> int:
    """Whose orders a conversation on stdio is about: no request says so, and whoever starts the app is trusted."""
    name = os.environ.get("SHOP_USER", "ada")
    return db.scalars(select(User.id).where(User.name == name)).one()


@acp_agent(name="shop", title="Shop", version="1.0.0")
class ShopAgent:
    """Understands `/orders` and `/order ITEM`."""

    @on.prompt
    def answer(self, turn: SyncPromptContext, db: Database, local: Annotated[int, Depends(local_user)]) -> str:
        owner = turn.user.id if turn.user else local
        if turn.command is None:
            return "I can show your /orders, and /order something for you."
        if turn.command.name == "order":
            return self.order(turn, db, owner, turn.command.argument)
        with turn.tool_call("Look up the orders", kind="search"):
            items = db.scalars(select(Order.item).where(Order.owner_id == owner).order_by(Order.id)).all()
        return "\n".join(items) or "You have ordered nothing."

    def order(self, turn: SyncPromptContext, db: Session, owner: int, item: str) -> str:
        if not turn.ask_permission(f"Order {item}", kind="edit"):
            return "Then not."
        with turn.tool_call(f"Write down the order of {item}", kind="edit"):
            db.add(Order(item=item, owner_id=owner))
        return f"Ordered {item}."


counting_agent = AcpClientSettings.from_mapping(
    {
        "client.transport.stdio.command": sys.executable,
        "client.transport.stdio.args": ["-m", "acp_integration", "stdio", "examples.agents:TallyAgent"],
        "client.transport.stdio.cwd": str(ROOT),
    },
    prefix="client",
)
agents = AcpFastAPI(ShopAgent, user=current_user, client=counting_agent)

app = FastAPI(title="A shop with an agent", lifespan=lifespan)
app.include_router(agents.router)


@app.get("/files")
async def files(ending: str, client: ClientDep, user: Annotated[User, Depends(current_user)]) -> dict[str, str]:
    """What a second agent, a program of its own, finds out about the files of the application."""
    session = await client.new_session(ROOT / "examples")
    return {"for": user.name, "said": (await session.prompt(f"/count {ending}")).text}
